"""W&B's integrations with libraries: that with Stable-Baselines3 is in `sb3`."""
