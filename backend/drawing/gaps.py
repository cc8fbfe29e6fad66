"""What is not finite: drawn as a hatched gap, and counted by kind."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme
from backend.drawing.theme import MINUS, error, faint, ground
from backend.statistics.columns import NOT_FINITE, Columns

_KINDS = ("NaN", "Inf", f"{MINUS}Inf")
_OPACITY, _HATCH_OPACITY = 0.1, 0.5
_CORNERS = 5
"""Of a stretch: four, after a gap."""


def in_words(counts: Sequence[int], n_total: int | None = None) -> str:
    """Such as `299 NaN, 1 Inf`; empty for none.

    Args:
        counts: numbers of values that are not finite, as in `columns.NOT_FINITE`.
        n_total: number of all values.
    """
    named = [f"{n:,} {kind}" for n, kind in zip(counts, _KINDS, strict=True) if n]
    if n_total and sum(counts) == n_total:
        if len(named) > 1:
            return f"None of the {n_total:,} values is finite: {', '.join(named)}"
        [kind] = [kind for n, kind in zip(counts, _KINDS, strict=True) if n]
        return f"All {n_total:,} values are {kind}" if n_total > 1 else f"The only value is {kind}"
    return ", ".join(named)


def hatched(data: Sequence[Mapping[str, Any]]) -> str:
    """What is not finite in the traces of a whole figure, in words; empty for none."""
    gaps = [trace["meta"] for trace in data if (trace.get("meta") or {}).get("kind") == "not_finite"]
    return in_words([sum(int(np.sum(meta[name])) for meta in gaps if name in meta) for name in NOT_FINITE])


def add_gap_notes(figure: Figure, lines: Sequence[Columns], theme: Theme) -> None:
    """The axis of `add_gaps`, and a text that counts what is not finite in all lines.

    A client with gaps needs the axis also where none of the lines' new buckets has one.
    """
    if not any("nan" in line for line in lines):
        return
    figure.layout["yaxis3"] = {
        "overlaying": "y",
        "anchor": "x",
        "range": [0, 1],
        "visible": False,
        "fixedrange": True,
    }
    counts = [sum(int(line[name].sum()) for line in lines if name in line) for name in NOT_FINITE]
    if not sum(counts):
        return
    n_values = sum(int(line["count"].sum()) for line in lines) + counts[0]
    nothing = sum(counts) == n_values
    figure.add_annotation(
        name="not_finite",
        text=in_words(counts, n_values),
        x=0.5 if nothing else 0.01,
        xref="x domain",
        xanchor="center" if nothing else "left",
        y=0.5 if nothing else 0.99,
        yref="y domain",
        yanchor="middle" if nothing else "top",
        showarrow=False,
        font={"color": error(theme), "size": 14 if nothing else 11},
        bgcolor=faint(ground(theme), 0.8),
        borderpad=1,
    )


def add_gaps(
    figure: Figure,
    key: str,
    facts: dict[str, Any],
    columns: Columns,
    n_new: int,
    start: int | None,
    theme: Theme,
) -> None:
    """Draw the buckets with values that are not finite over the whole height, from the end of the bucket
    before.

    Args:
        figure: gets the trace, or what a client lacks of it.
        key: names the line within the figure.
        facts: about the trace.
        columns: the buckets of the line, with `columns.NOT_FINITE`.
        n_new: number of those that the client gets.
        start: the first bucket that the client lacks; None if it gets all.
        theme: light or dark.
    """
    n_known = len(columns["x"]) - n_new
    counts = np.stack([columns[name] for name in NOT_FINITE])
    rows = n_known + np.flatnonzero(counts[:, n_known:].sum(axis=0))
    right = columns["x"][rows].astype("f8")
    left = np.where(rows > 0, columns["x"][np.maximum(rows - 1, 0)], 0.0 if start is None else right)
    gap, bottom, top = np.full(len(rows), np.nan), np.zeros(len(rows)), np.ones(len(rows))
    x = np.column_stack([gap, left, right, right, left]).ravel()
    y = np.column_stack([gap, bottom, bottom, top, top]).ravel()
    is_first = np.arange(len(x)) % _CORNERS == 0
    buckets = np.repeat(columns["bucket"][rows], _CORNERS)
    details = {"bucket": buckets} | {
        name: np.where(is_first, np.repeat(number[rows], _CORNERS), 0)
        for name, number in zip(NOT_FINITE, counts, strict=True)
    }

    def gap_look() -> dict[str, Any]:
        return {
            "mode": "lines",
            "fill": "toself",
            "fillcolor": faint(error(theme), _OPACITY),
            "fillpattern": {
                "shape": "/",
                "size": 6,
                "solidity": 0.2,
                "fgcolor": faint(error(theme), _HATCH_OPACITY),
            },
            "line": {"width": 0, "color": faint(error(theme), 0.0)},
            "name": "not finite",
            "legendgroup": "not finite",
            "showlegend": False,
            "hoverinfo": "skip",
            "yaxis": "y3",
            "meta": facts,
        }

    figure.add_growing(
        f"{key} not finite",
        buckets,
        start,
        gap_look,
        {"x": x, "y": y},
        details=details,
        may_shrink=n_new > len(rows),
    )
