"""A Plotly figure as plain dictionaries.

Plotly's own class validates every property whenever one is set: ten times the work of the rest of a request.
Tests validate the figures with it.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Figure:
    """Layout and traces, as Plotly's JSON names their properties."""

    layout: dict[str, Any]
    data: list[dict[str, Any]] = field(default_factory=list)

    def add_scatter(self, **properties: Any) -> None:
        """Add a trace of type scatter; properties that are None are left out."""
        given = {name: value for name, value in properties.items() if value is not None}
        self.data.append({"type": "scatter", **given})

    def add_line(self, line: dict[str, Any], **ends: Any) -> None:
        """Add a straight line from `x0`, `y0` to `x1`, `y1` of `xref` and `yref`, behind the traces."""
        shapes = self.layout.setdefault("shapes", [])
        shapes.append({"type": "line", "layer": "below", "line": line, **ends})

    def add_annotation(self, **properties: Any) -> None:
        """Add a text."""
        self.layout.setdefault("annotations", []).append(properties)

    def to_html(self) -> str:
        """A page that shows it without a network."""
        from plotly.io import to_html  # slow to import (0.3 s)

        page: str = to_html({"data": self.data, "layout": self.layout})
        return page
