"""How the pages label and draw metrics; each algorithm declares those of its own."""

from dataclasses import dataclass

EXPLAINED_VARIANCE = "value/explained_variance"
"""Share of the variance of the returns that the values explain."""


@dataclass(frozen=True)
class Metric:
    """Labels of a metric."""

    title: str
    axis: str
    """Axis label with the unit; short enough for a chart 200 pixels high."""
    divisor: float = 1.0
    """Figures draw the values divided by it, such as MiB in place of bytes."""


@dataclass(frozen=True)
class Panel:
    """One figure of a run's diagnostics: several metrics of its method, as in its paper."""

    id: str
    title: str
    axis: str
    """Title of the vertical axis, with the unit."""
    names: dict[str, str]
    """Its metrics and their legend entries; sources (actors, shards) are shown by their names. Colours follow
    this order, the same on every panel: training first, then prediction."""
    stacked: bool = False
    """Whether the lines are shares of a whole, stacked."""
    stepped: bool = False
    """Whether values hold until the next change."""
    needs: str | None = None
    """The metric without which the panel is of no use; None: it needs any of its metrics."""
