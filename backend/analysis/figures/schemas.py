"""Response bodies of figures."""

from typing import Any

from pydantic import Field

from backend.specs.fields import Schema


class FigureOut(Schema):
    """A Plotly figure. Numbers are typed arrays, in binary as Plotly reads them, or lists."""

    data: list[dict[str, Any]]
    """Traces. Those that grow have a `uid`, and in `meta` what they show: `kind` (`line`, `range`,
    `points`), `run` or `group`, `metric`, `source`, and `label` in parts {name, settings, detail}; and of
    each point `low`, `high` and `n`, the range (of a window mean: one standard deviation below and above it)
    and number of its values, and `bucket`, which counts from 0 where it is missing.

    With `since_revision`, a trace without a change is missing, and a trace with `from` is the rest of one
    that the client has: drop the points of buckets from `from` on, append these, and replace the other
    properties that are given. A client that lacks a trace with such a `uid` needs the whole figure."""
    layout: dict[str, Any] | None = None
    """Layout, as Plotly reads it; missing from an answer to `since_revision` without `layout=true`."""
    revisions: list[int] = Field(default=[])
    """The runs' revisions: send them as `since_revision` to get later data."""
    x: str | None = Field(default=None, examples=["agent_steps"])
    """What the horizontal axis counts: the requested unit, or `iterations` or `seconds` of external runs in
    place of agent steps; null for another axis."""
    n_total: int = 0
    """Points of all series, in the range of x if there is one."""
    n_shown: int = 0
    """Their buckets before any are merged, or grid points."""
    bands: list[str] = Field(default=[])
    """What is drawn around the lines, or instead of the centres of groups."""
    scales: list[float] = Field(default=[], examples=[[10_000]])
    """Width of the window or time constant of the smoothing over x: one if it is that of all runs, else one
    for each; empty without any. Send them as `had_scale` with `since_revision`."""


class FiguresOut(Schema):
    """Several figures of the same runs, in the requested order."""

    items: list[FigureOut]
    """The figures."""


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
