"""A figure as a response body."""

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
