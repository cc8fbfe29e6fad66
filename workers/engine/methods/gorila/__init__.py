"""Gorila (Nair et al. 2015) as plain classes, which Ray runs in processes."""
