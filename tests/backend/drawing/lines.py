"""Two run ids, a line and validation, for the tests of the figures."""

from base64 import b64decode
from typing import Any

import numpy as np
import plotly.graph_objects as go

from backend.drawing.curve import CurveLine
from backend.drawing.figure import Figure, Label

A, B = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"


def line(run: str = A, metric: str = "loss/value", **more: Any) -> CurveLine:
    columns = {
        "x": np.array([10, 20, 30]),
        "mean": np.array([1.0, np.nan, 3.0]),
        "min": np.array([0.0, np.nan, -np.inf]),
        "max": np.array([2.0, np.nan, 4.0]),
        "count": np.array([1, 0, 1]),
        "smoothed": np.array([1.0, 1.0, 2.0]),
    }
    default: dict[str, Any] = {
        "run": run,
        "label": Label("a run"),
        "metric": metric,
        "source": "",
        "columns": columns,
    }
    return CurveLine(**(default | more))


def valid(figure: Figure) -> go.Figure:
    """The figure as Plotly's class, which refuses properties and values that it does not know; its numbers as
    tuples, with None for those that are not finite."""
    document = figure.document()
    go.Figure({"data": document["data"], "layout": figure.layout})
    return go.Figure({"data": [_listed(trace) for trace in figure.data], "layout": figure.layout})


def _listed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [number if np.isfinite(number) else None for number in value.tolist()]
    return {name: _listed(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def drawn(figure: go.Figure) -> list[Any]:
    """The traces without those that are legend entries alone."""
    return [trace for trace in figure.data if trace.meta is None or trace.meta.get("kind") != "legend"]


def numbers(sent: Any) -> list[Any]:
    """The numbers of a typed array or list of an answer, with None for those that are not finite."""
    if isinstance(sent, list):
        return sent
    values = np.frombuffer(b64decode(sent["bdata"]), f"<{sent['dtype']}").tolist()
    return [value if np.isfinite(value) else None for value in values]
