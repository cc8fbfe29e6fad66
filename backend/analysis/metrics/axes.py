"""Axes of charts, and the width of their smoothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics.run_axes import (
    conversions,
    convert,
    stored_column,
)
from backend.analysis.metrics.smoothing import (
    Smoothing,
)
from backend.db import Run
from backend.drawing.catalogue import X_AXES

MAX_X = 1e15
"""The largest position on a horizontal axis."""


@dataclass(frozen=True)
class Axes:
    """Parameters of a chart."""

    x: str
    """One of `catalogue.X_AXES`."""
    max_points: int
    smooth: float = 0.0
    """Weight of the past in [0, 1); 0 for no smoothing. For the smoothing `points`."""
    smoothing: Smoothing = "points"
    scale: float | None = 0.0
    """For the other kinds of smoothing: time constant or width in units of x; 0 for no smoothing; None for a
    width for each run, which `with_scales` adds."""
    span: tuple[float, float] | None = None
    """The shown range of x; None for all."""
    scales_had: Sequence[float] = ()
    """The automatic scales of the data that the client has, as `scales`."""
    scale_by_run: Mapping[str, float] = field(default_factory=dict, hash=False)
    """By run, the automatic scale."""

    @property
    def column(self) -> str:
        """The column of points that x is read or computed from."""
        return stored_column(self.x)

    @property
    def smooths(self) -> bool:
        """Whether there is any smoothing."""
        if self.smoothing == "points":
            return self.smooth > 0
        return self.scale is None or self.scale > 0

    @property
    def scales(self) -> list[float]:
        """The scales of the runs: one if they are equal, else one each; empty without smoothing over x."""
        if self.smoothing == "points" or not self.smooths:
            return []
        scales = list(self.scale_by_run.values()) if self.scale is None else [self.scale]
        return scales[:1] if len(set(scales)) == 1 else scales

    def scale_of(self, run_id: str) -> float:
        """The scale of one run."""
        return self.scale_by_run[run_id] if self.scale is None else self.scale

    @property
    def description(self) -> str:
        """The smoothing for a legend; empty for none."""
        if self.smoothing == "points":
            return f"{self.smooth:g}" if self.smooth > 0 else ""
        if not self.scales:
            return ""
        unit = X_AXES[self.x].unit
        widths = [f"{scale:,.0f}" if scale >= 1000 else f"{scale:g}" for scale in sorted({*self.scales})]
        width = " to ".join(dict.fromkeys((widths[0], widths[-1])))
        own = ", a twentieth of each run’s length or less" if len(widths) > 1 else ""
        return f"over {width} {unit}{own}" + (" (EMA)" if self.smoothing == "ema" else "")


def automatic_scale(furthest: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most a twentieth of `furthest`, which is how
    far the run has come; 1 if it is 0.

    Between one fiftieth and one twentieth of the run, it is narrow beside its line and contains many
    episodes. It changes three times while a run becomes ten times as long: each change makes every client
    start from scratch.
    """
    if not furthest > 0:
        return 1.0
    widest = furthest * (1 + 1e-9) / 20
    decade = 10.0 ** math.floor(math.log10(widest))
    return max(factor * decade for factor in (0.5, 1.0, 2.0, 5.0) if factor * decade <= widest)


def with_scales(session: Session, axes: Axes, runs: Iterable[Run]) -> Axes:
    """The same axes with the automatic scale of each run, unless a scale is given: that of a run depends on
    its own length, whatever is drawn beside it."""
    if axes.scale is not None:
        return axes
    ordered = list(runs)
    known = conversions(session, [run.id for run in ordered], axes.x)
    reached = {
        run.id: float(convert(np.array([getattr(run, axes.column)]), known.get(run.id))[0]) for run in ordered
    }
    return replace(axes, scale_by_run={run_id: automatic_scale(x) for run_id, x in reached.items()})
