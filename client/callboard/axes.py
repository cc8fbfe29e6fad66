"""The axis of a script that names it as W&B's do: by `global_step`, or by `define_metric(step_metric=…)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from callboard.known_tags import RunUnit

GLOBAL_STEP = "global_step"
_AGENT_STEPS = re.compile(
    "(.*/)?(num_|total_|env_|agent_|environment_|training_|train_)*"
    "(global_step|agent_steps?|env(ironment)?_?steps?|time_?steps?|interactions|steps?_sampled|steps?)"
    "(_sampled|_total|_lifetime|_trained)*"
)
_OPTIMIZER_STEPS = frozenset({"train/global_step", "trainer/global_step"})
"""What transformers and Lightning count: steps of the optimizer."""


@dataclass(frozen=True)
class Axis:
    """A metric whose values are the steps of the others."""

    metric: str
    unit: RunUnit


class Axes:
    """The axes that a script has named. A run has a single one: the first that counts agent steps, else the
    first one that it logs."""

    def __init__(self) -> None:
        """Only `global_step` is known."""
        self._defined: dict[str, str] = {}
        self.said: list[str] = []
        """Axes that are not used: a sentence each."""

    def define(self, pattern: str, metric: str) -> None:
        """The script has named the axis of the metrics of this name, which may end in `*`."""
        self._defined[pattern] = metric

    @property
    def candidates(self) -> list[str]:
        """Metrics that may be the axis."""
        return [*dict.fromkeys(self._defined.values()), GLOBAL_STEP]

    def of_whole(self, rows: Iterable[Mapping[str, Any]]) -> Axis | None:
        """The axis of complete rows; a metric whose values are not all whole numbers is none."""
        logged: set[str] = set()
        fractional: set[str] = set()
        candidates = self.candidates
        for row in rows:
            for name in candidates:
                value = row.get(name)
                if isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0:
                    logged.add(name)
                    if value != int(value):
                        fractional.add(name)
        return self.of_rows(logged - fractional)

    def of_rows(self, names: Iterable[str]) -> Axis | None:
        """The axis of rows with these metrics; None: they are counted."""
        logged = set(names)
        candidates = [metric for metric in self.candidates if metric in logged]
        axes = sorted(map(axis_of, candidates), key=lambda axis: axis.unit != "agent_steps")  # it is stable
        self.said = [
            f"the axis of a run is {axes[0].metric}: of {pattern}, define_metric names {metric}, whose "
            "values are a metric"
            for pattern, metric in self._defined.items()
            if axes and metric != axes[0].metric
        ]
        return axes[0] if axes else None


def axis_of(metric: str) -> Axis:
    """A metric as an axis: what it counts, by its name."""
    counts = metric not in _OPTIMIZER_STEPS and _AGENT_STEPS.fullmatch(metric.lower()) is not None
    return Axis(metric, "agent_steps" if counts else "iterations")
