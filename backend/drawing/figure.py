"""A Plotly figure as plain dictionaries, and what of it a client lacks.

Plotly's own class validates every property whenever one is set: ten times the work of the rest of a request.
Tests validate the figures with it.

Each point of a growing trace belongs to a bucket. A client that has the figure already gets only the points
from some bucket on: it drops its own points of these buckets and appends the new ones.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isfinite
from typing import Any

import numpy as np

from backend.drawing.palette import Theme
from backend.statistics.columns import Array

MAX_LISTED = 7
"""Up to this many numbers are sent as a list: about as long as a typed array, and written in less time. The
outline of two new buckets has as many corners."""

_UNSIGNED = (("u1", 2**8), ("u2", 2**16), ("u4", 2**32))


def uid_of(name: str) -> str:
    """The `uid` of a trace of this name: an identifier, since Plotly looks for elements by it."""
    return f"t{blake2b(name.encode(), digest_size=6).hexdigest()}"


@dataclass(frozen=True)
class Label:
    """What a trace is called, in parts: pages leave out what they show elsewhere."""

    name: str
    """The name of the run or group in the view."""
    detail: str = ""
    """Such as the source."""
    n_seeds: int | None = None
    """Number of seeds of a group."""

    @property
    def text(self) -> str:
        """The whole label."""
        named = f"{self.name}, {self.detail}" if self.detail else self.name
        return named if self.n_seeds is None else f"{named} (n = {self.n_seeds})"

    def parts(self) -> dict[str, str]:
        """As JSON, without the number of seeds; parts that are empty are left out."""
        every = {"name": self.name, "detail": self.detail}
        return {part: text for part, text in every.items() if text}


@dataclass(frozen=True)
class FigureOptions:
    """How figures are shown."""

    theme: Theme = "light"
    width_px: int | None = None
    in_panel: bool = False
    """For a panel of a page, which has a heading and a tooltip of its own."""


@dataclass
class Figure:
    """Layout and traces, as Plotly's JSON names their properties. Numbers may be arrays."""

    layout: dict[str, Any] = field(default_factory=dict)
    """Empty for a client that has it."""
    x: str | None = None
    """What the horizontal axis counts, one of `catalogue.X_AXES`; None if it is none of them."""
    data: list[dict[str, Any]] = field(default_factory=list)
    """Traces, or what a client lacks of them."""
    n_total: int = 0
    """Points of all series that are drawn; of a study, runs or bars."""
    n_shown: int = 0
    """Buckets, or grid points, that are drawn of them."""
    bands: list[str] = field(default_factory=list)
    """What is drawn around the lines, or instead of the centres of groups."""
    scales: list[float] = field(default_factory=list)
    """Width of the window or time constant of the smoothing over x: one if it is that of all runs, else one
    for each; empty without any."""

    def add_scatter(self, **properties: Any) -> None:
        """Add a trace of type scatter; properties that are None are left out."""
        given = {name: value for name, value in properties.items() if value is not None}
        self.data.append({"type": "scatter", **given})

    def add_growing(
        self,
        name_in_figure: str,
        buckets: Array,
        start: int | None,
        look: Callable[[], dict[str, Any]],
        numbers: dict[str, Array],
        *,
        details: dict[str, Array] | None = None,
        changed: dict[str, Any] | None = None,
        may_shrink: bool = False,
    ) -> None:
        """Add a trace that grows, or what a client with a part of it lacks.

        Args:
            name_in_figure: name of the trace, the same whenever the figure is drawn.
            buckets: the bucket of each point.
            start: the first bucket that the client lacks; None if it gets the whole trace.
            look: returns the other properties of the trace, with facts about it in `meta`.
            numbers: one of each point, by property.
            details: more numbers about each point, by name.
            changed: properties that a client with a part of the trace gets as well, if they are known.
            may_shrink: whether the client may have points from `start` on where there are none any more.
        """
        uid = uid_of(name_in_figure)
        first = start or 0
        meta = details or {}
        if not np.array_equal(buckets, np.arange(first, first + len(buckets))):
            meta = meta | {"bucket": buckets}
        if start is None:
            properties = look()
            self.add_scatter(uid=uid, **numbers, **properties | {"meta": properties["meta"] | meta})
        elif len(buckets):
            self.data.append({"uid": uid, "from": start, **numbers, "meta": meta, **(changed or {})})
        elif changed or may_shrink:
            self.data.append({"uid": uid, **({"from": start} if may_shrink else {}), **(changed or {})})

    def add_line(self, line: dict[str, Any], **ends: Any) -> None:
        """Add a straight line from `x0`, `y0` to `x1`, `y1` of `xref` and `yref`, behind the traces."""
        shapes = self.layout.setdefault("shapes", [])
        shapes.append({"type": "line", "layer": "below", "line": line, **ends})

    def add_annotation(self, **properties: Any) -> None:
        """Add a text."""
        self.layout.setdefault("annotations", []).append(properties)

    def document(self) -> dict[str, Any]:
        """The figure as JSON names and numbers."""
        document: dict[str, Any] = {"data": [_sendable(trace) for trace in self.data]}
        if self.layout:
            document |= {"layout": self.layout, "x": self.x}
        counts = {"n_total": self.n_total, "n_shown": self.n_shown}
        return document | counts | {"bands": self.bands, "scales": self.scales}

    def to_html(self) -> str:
        """A page that shows it without a network."""
        from plotly.io import to_html  # slow to import (0.3 s)

        page: str = to_html({"data": [_sendable(trace) for trace in self.data], "layout": self.layout})
        return page


def _sendable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return typed_array(value)
    if isinstance(value, dict):
        return {name: _sendable(inner) for name, inner in value.items()}
    return value


def typed_array(values: Array) -> dict[str, Any] | list[Any]:
    """Numbers as Plotly reads them from JSON: in binary, in the fewest bytes; a few as a list, with null for
    those that are not finite."""
    if len(values) <= MAX_LISTED:
        return [value if isfinite(value) else None for value in values.tolist()]
    is_known = np.isfinite(values)
    if not is_known.all():
        values = np.where(is_known, values, np.nan)
    elif values.min() >= 0 and (values == np.rint(values)).all():
        largest = values.max()
        for dtype, end in _UNSIGNED:
            if largest < end:
                return {"dtype": dtype, "bdata": b64encode(values.astype(f"<{dtype}").tobytes()).decode()}
    return {"dtype": "f8", "bdata": b64encode(values.astype("<f8").tobytes()).decode()}
