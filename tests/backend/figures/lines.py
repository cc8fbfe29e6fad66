"""Two run ids, a line and validation, for the tests of the figures."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from backend.figures.curve import CurveLine
from backend.figures.figure import Figure

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
        "name": "a run",
        "metric": metric,
        "source": "",
        "columns": columns,
    }
    return CurveLine(**(default | more))


def valid(figure: Figure) -> go.Figure:
    """The figure as Plotly's class, which refuses properties and values that it does not know."""
    return go.Figure({"data": figure.data, "layout": figure.layout})
