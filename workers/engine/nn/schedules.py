"""Schedules of hyperparameters over a run.

A module of its own because every method uses them, and none of them needs torch.
"""


def linear(start: float, progress: float) -> float:
    """Falls linearly from `start` at progress 0 to 0 at progress 1 (Mnih et al. 2016, section 5.1).

    Args:
        start: the initial value.
        progress: completed fraction of the run; may exceed 1.
    """
    return start * max(0.0, 1.0 - progress)


def learning_rate(start: float, schedule: str, progress: float) -> float:
    """The learning rate of a run under its `learning_rate_schedule`: `constant` or `linear`."""
    return linear(start, progress) if schedule == "linear" else start


def annealed(start: float, end: float, elapsed: float, duration: float) -> float:
    """Goes linearly from `start` to `end` while `elapsed` goes from 0 to `duration`, then stays at `end`."""
    return end if elapsed >= duration else start + (end - start) * elapsed / duration
