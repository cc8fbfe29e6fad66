"""A2C with generalised advantage estimates: an algorithm that is no part of Callboard."""
