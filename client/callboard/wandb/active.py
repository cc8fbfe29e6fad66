"""The run that W&B's calls log to, and what is said of them before there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.foreign import Foreign
from callboard.wandb.table import TABLE

if TYPE_CHECKING:
    from callboard.wandb.wandb_run import WandbRun

ACTIVE: dict[str, WandbRun] = {}
"""`run`: the run of the last `init`, until it is finished."""

_before = Foreign("wandb", TABLE)


def speaker() -> Foreign:
    """What says, once a run, what a call of W&B's means here."""
    run = ACTIVE.get("run")
    return _before if run is None else run.foreign


def current(function: str) -> WandbRun | None:
    """The run; without one, warn once that a function does nothing."""
    run = ACTIVE.get("run")
    if run is None:
        _before.say(function, "it does nothing without a run: call wandb.init() first")
    return run
