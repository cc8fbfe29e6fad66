"""Quantities that change with training."""


def linear(start: float, progress: float) -> float:
    """From `start` at progress 0 down to 0 at progress 1 and beyond (Mnih et al. 2016, section 5.1).

    Args:
        start: value at the beginning.
        progress: share of the run that is done, at least 0.
    """
    return start * max(0.0, 1.0 - progress)


def annealed(start: float, end: float, done: float, duration: float) -> float:
    """From `start` to `end` while `done` goes from 0 to `duration`, and `end` from there on."""
    return end if done >= duration else start + (end - start) * done / duration
