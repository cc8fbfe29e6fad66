"""The run that W&B's calls log to, and what is said of them before there is one."""

from __future__ import annotations

from typing import Any

from callboard.foreign import Foreign
from callboard.wandb.table import TABLE

ACTIVE: dict[str, Any] = {}
"""`run`: the `WandbRun` of the last `init`, until it is finished."""

_before = Foreign("wandb", TABLE)


def speaker() -> Foreign:
    """What says, once a run, what a call of W&B's means here."""
    run = ACTIVE.get("run")
    foreign: Foreign = _before if run is None else run.foreign
    return foreign


def current(function: str) -> Any:
    """The `WandbRun`; without one, warn once that a function does nothing."""
    run = ACTIVE.get("run")
    if run is None:
        _before.say(function, "it does nothing without a run: call wandb.init() first")
    return run
