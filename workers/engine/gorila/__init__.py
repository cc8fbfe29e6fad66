"""The parts of Gorila (Nair et al. 2015), as plain classes: `dqn` calls them in turn, Ray spreads them."""
