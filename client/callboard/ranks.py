"""The rank of this process among those of one training, as `torchrun`, Slurm and MPI give it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from callboard.external import ExternalRun
from callboard.tally import warn

VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK")
"""Variables of the environment with the number of a process. One above 0 is that of a further process."""


def rank() -> tuple[str, int]:
    """The variable that gives this process a number above 0, and that number; else an empty text and 0."""
    for name in VARIABLES:
        text = os.environ.get(name, "")
        if text.isdecimal() and int(text) > 0:
            return name, int(text)
    return "", 0


class SilentRun(ExternalRun):
    """The run of a process with a rank above 0: it has every method, and logs nothing."""

    def __init__(self, name: str, config: Mapping[str, Any]) -> None:
        """Say once that this process logs nothing."""
        variable, number = rank()
        self._name = name
        self._agent_steps = 0
        self.counts_iterations = False
        self._unfinished = None
        self.config: Any = dict(config)
        warn(
            "callboard: process %d logs nothing (%s=%d): the process of rank 0 logs the run; where each "
            "process is a training of its own, remove %s from its environment",
            number,
            variable,
            number,
            variable,
        )

    def __repr__(self) -> str:
        """Name."""
        return f"<SilentRun {self._name!r}>"

    @property
    def id(self) -> None:
        """None: it is no run of the server."""

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self._name

    @property
    def stop_requested(self) -> bool:
        """False: nobody can stop it."""
        return False

    @property
    def dropped(self) -> dict[str, int]:
        """Nothing: what it does not log is another process's."""
        return {}

    @property
    def n_changed(self) -> int:
        """0."""
        return 0

    def log(self, values: Any, **options: Any) -> None:
        """Do nothing, as do the following methods."""

    def episode(self, return_: Any, length: Any, **options: Any) -> None:
        """Do nothing."""

    def text(self, name: str, text: str | None = None, **options: Any) -> None:
        """Do nothing."""

    def video(self, path_or_frames: Any, **options: Any) -> None:
        """Do nothing."""

    def checkpoint(self, path: Any, **options: Any) -> None:
        """Do nothing."""

    def flush(self, timeout_s: float = 0.0) -> bool:
        """Do nothing."""
        return True

    def close(self, state: str | None = None, reason: str | None = None, *, timeout_s: float = 0.0) -> None:
        """Do nothing."""

    def _rewind(self, agent_steps: int) -> None:
        """Do nothing."""

    def _describe(self, fields: dict[str, Any]) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing."""
