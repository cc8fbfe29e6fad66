"""Weights & Biases' calls, logging to a run: `import callboard.wandb as wandb` in a script written for it.

The step of a row is the value of the metric that the script names by `define_metric(…, step_metric=…)`,
or the `global_step` that is logged with it, as agent steps; without one it is `step`, else the number of
rows, and the run counts iterations. `init(step_unit="agent_steps")` says that `step` counts agent steps.
Numbers, texts, settings, histograms, images, tables, videos and saved files are kept. What W&B's names and
arguments mean is declared in `table`: each is used, or said once a run, or refused before training.

`install()` lets libraries that import `wandb` themselves log here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from callboard.wandb import errors, util
from callboard.wandb.active import ACTIVE, current
from callboard.wandb.errors import CommError, Error, UsageError
from callboard.wandb.installing import MODULES, install, submodule
from callboard.wandb.media import (
    AlertLevel,
    Artifact,
    Audio,
    Graph,
    Histogram,
    Html,
    Image,
    Molecule,
    Object3D,
    Plotly,
    Table,
    Video,
    plot,
    stub,
)
from callboard.wandb.settings import WandbConfig, WandbSummary
from callboard.wandb.starting import Settings, init
from callboard.wandb.wandb_run import WandbRun

__version__ = "0.31.0"
"""The version of W&B whose names these are."""

__all__ = [
    "AlertLevel",
    "Artifact",
    "Audio",
    "CommError",
    "Error",
    "Graph",
    "Histogram",
    "Html",
    "Image",
    "Molecule",
    "Object3D",
    "Plotly",
    "Settings",
    "Table",
    "UsageError",
    "Video",
    "alert",
    "define_metric",
    "errors",
    "finish",
    "init",
    "install",
    "log",
    "log_artifact",
    "log_model",
    "login",
    "plot",
    "save",
    "unwatch",
    "use_artifact",
    "util",
    "watch",
]

run: WandbRun | None
"""The run of the last `init`, until it is finished."""
config: WandbConfig
"""Settings of the current run."""
summary: WandbSummary
"""Summary of the current run."""

Run = WandbRun
Config = WandbConfig
patched: dict[str, Any] = {"tensorboard": [], "keras": [], "gym": []}


def log(data: Mapping[str, Any], step: Any = None, commit: bool | None = None, **options: Any) -> None:
    """Log the values of a row, as `WandbRun.log` does; without a run, warn once."""
    if (active := current("log")) is not None:
        active.log(data, step, commit)


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    """End the run, if there is one."""
    if (active := ACTIVE.get("run")) is not None:
        active.finish(exit_code)


join = teardown = finish


def save(glob_str: str | os.PathLike[str] | None = None, *arguments: Any, **options: Any) -> list[str]:
    """Store files with the run; without files, do nothing."""
    return [] if (active := current("save")) is None else active.save(glob_str, *arguments, **options)


def alert(title: str, text: str = "", level: Any = None, wait_duration: Any = None) -> None:
    """Raise an alert, unless one with its title was raised in the last minute, or `wait_duration`."""
    if (active := current("alert")) is not None:
        active.alert(title, text, level, wait_duration)


def log_model(path: Any, name: str | None = None, aliases: Any = None) -> None:
    """Store a file, or the files of a folder, with the run."""
    if (active := current("log_model")) is not None:
        active.log_model(path, name, aliases)


def log_artifact(*arguments: Any, **options: Any) -> Any:
    """Count an artifact that is not kept: `save` keeps files."""
    if (active := current("log_artifact")) is not None:
        active.log_artifact()
    return Artifact()


def use_artifact(*arguments: Any, **options: Any) -> Any:
    """Count an artifact that is not read; refused before training."""
    active = ACTIVE.get("run")
    if active is None:
        return stub("use_artifact")()
    active.use_artifact()
    return Artifact()


def watch(*arguments: Any, **options: Any) -> None:
    """Count gradients that are not kept."""
    if (active := current("watch")) is not None:
        active.watch()


def unwatch(*arguments: Any, **options: Any) -> None:
    """Do nothing: nothing is watched."""


def define_metric(*arguments: Any, **options: Any) -> Any:
    """Name the axis of metrics, as `WandbRun.define_metric` does."""
    return (
        None if (active := current("define_metric")) is None else active.define_metric(*arguments, **options)
    )


def login(*arguments: Any, **options: Any) -> bool:
    """Do nothing: `CALLBOARD_TOKEN` is the token."""
    from callboard.wandb.active import speaker

    speaker().arguments("login", options)
    return True


def ensure_configured() -> None:
    """Do nothing: there is nothing to configure."""


def setup(settings: Any = None) -> Any:
    """Nothing that is needed."""
    return stub("Setup")


def termlog(string: str = "", *arguments: Any, **options: Any) -> None:
    """Print a line to the standard error."""
    sys.stderr.write(f"{string}\n")


termwarn = termerror = termlog


def termsetup(*arguments: Any, **options: Any) -> None:
    """Do nothing: there is nothing to set up."""


def __getattr__(name: str) -> Any:
    """`run`, `config` and `summary` are those of the current run; W&B's further names say once that they do
    nothing."""
    active = ACTIVE.get("run")
    if name == "run":
        return active
    if name in ("config", "summary"):
        if active is None:
            raise AttributeError(f"wandb.{name}: call wandb.init() first")
        return getattr(active, name)
    return submodule(name) if name in MODULES else stub(name)
