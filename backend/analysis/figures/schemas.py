"""Response bodies of figures."""

from typing import Literal

from pydantic import Field

from backend.drawing.schemas import FigureOut
from backend.specs.fields import Schema


class FiguresOut(Schema):
    """Several figures of the same runs, in the requested order."""

    items: list[FigureOut]
    """The figures."""


class MissingOut(Schema):
    """A metric or formula that some runs have no values of."""

    line: str = Field(examples=["loss/policy / loss/value"])
    """The metric, or the formula."""
    metrics: list[str]
    """Which of its metrics, that of the horizontal axis included, any of these runs lacks."""
    n_runs: int
    """Number of these runs."""
    is_empty: bool
    """Whether no run has a value of it."""


class LinesOut(FigureOut):
    """Several metrics or formulas of runs in one chart."""

    missing: list[MissingOut] = Field(default=[])
    """The metrics and formulas that some runs have no values of."""


class VarianceShare(Schema):
    """What a setting explains of the variance of scores."""

    settings: list[str] = Field(examples=[["config.learning_rate"]])
    """The setting; several that were only changed together; empty for combinations and for the seed."""
    title: str = Field(examples=["Learning rate"])
    """What it is called."""
    share: float = Field(examples=[0.81])
    """Share of the variance, from 0 to 1; all add up to 1."""
    kind: Literal["setting", "combinations", "seed"]
    """`setting`: its main effect; `combinations`: what settings explain only together; `seed`: the variance
    among runs with equal settings."""


class ScoresOut(FigureOut):
    """Scores of the configs of a comparison."""

    n_runs: int = 0
    """Number of runs whose scores count."""
    n_left_out: int = 0
    """Number of runs with a score that does not count."""
    notes: list[str] = Field(default=[])
    """What must be known beside the numbers, in sentences: runs that did not finish, or are left out."""
    shares: list[VarianceShare] = Field(default=[])
    """Of `importance`, the bars; empty if there are too few runs, as the last of `notes` says then."""


class Palette(Schema):
    """The styles of runs and groups on every chart, from 0 to 99: style s has colour s % 20 and symbol
    s // 10. Runs and groups get them in the order in which they were requested."""

    light: list[str]
    """Colours on light pages: the palette, and its lighter or darker shades."""
    dark: list[str]
    """Colours on dark pages."""
    names: list[str]
    """Names of the palette's colours."""
    symbols: list[str]
    """Symbols on lines, by Plotly's names; empty for none."""


class PanelOut(Schema):
    """A panel of a run's diagnostics."""

    id: str
    """Id of the panel, for `GET /figures/diagnostic`."""
    title: str = Field(examples=["Queues"])
    """Name of the panel, as pages show it."""
    metrics: list[str]
    """The metrics that it shows."""


class Panels(Schema):
    """The diagnostics panels of a run."""

    items: list[PanelOut]
    """Panels that the run has data for."""
