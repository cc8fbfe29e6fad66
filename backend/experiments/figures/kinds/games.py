"""`games`: a bar for each arm and environment."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backend.drawing.bars import Bar
from backend.drawing.figure import Figure
from backend.drawing.palette import SYMBOLS, Look, Theme, look
from backend.drawing.panels import FRAME_PX, Frame, present
from backend.drawing.theme import ground, layout, muted, plain_text
from backend.experiments.figures.kind import Kind, StudyDrawing
from backend.experiments.figures.reducers import count_runs, reduce_runs
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.words import finite_or_none, highest_and_lowest, value_title

_HATCHES = dict(
    zip(
        SYMBOLS[1:],
        (("/", 5), ("x", 5), ("-", 5), (".", 5), ("\\", 5), ("|", 5), ("+", 5), ("/", 12), (".", 12)),
        strict=True,
    )
)
"""What bars have in place of the symbols of lines: the shape, and its size in pixels."""


def _draw(runs: FigureRuns, loaded: None, frame: Frame) -> StudyDrawing:
    reduction = reduce_runs(runs)
    bars = [
        Bar(
            cell.arm,
            runs.title(cell.environment),
            finite_or_none(cell.value),
            cell.arm,
            n=cell.n,
            low=cell.low,
            high=cell.high,
        )
        for cell in reduction.cells
    ]
    reference = 100.0 if reduction.unit == "%" else None
    drawing = games_figure(bars, x=value_title(reduction), reference=reference, frame=frame)
    n_in, n_planned = count_runs(runs, reduction.cells)
    finding = highest_and_lowest(runs, reduction)
    return StudyDrawing(runs.figure, drawing, None, reduction.caption, finding, n_in, n_planned)


def games_figure(bars: Sequence[Bar], *, x: str, reference: float | None, frame: Frame) -> Figure:
    """Horizontal bars of each arm over all environments, the highest first, as in Nair et al. 2015, Figures 3
    and 4.

    Args:
        bars: values by arm and environment; `panel` is the environment.
        x: title of the values.
        reference: a line, such as 100 % of a human; None for none.
        frame: title, arms, theme and width.
    """
    known = [bar for bar in bars if bar.value is not None]
    shown = present(frame.arms, [bar.arm for bar in known])
    best: dict[str, float] = {}
    for bar in known:
        best[bar.panel] = max(best.get(bar.panel, -np.inf), bar.value or 0.0)
    order = sorted(best, key=lambda panel: best[panel])  # Plotly draws the first at the bottom
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    height = FRAME_PX + len(order) * (12 + 14 * max(1, len(shown)))
    figure.layout |= {
        "height": max(220, height),
        "hovermode": "closest",
        "barmode": "group",
        "bargap": 0.3,
        "showlegend": len(shown) > 1,
        "xaxis": {"title": {"text": plain_text(x)}, "exponentformat": "SI"},
        "yaxis": {"type": "category", "categoryorder": "array", "categoryarray": order},
    }
    figure.layout.pop("hoversubplots", None)
    for arm in shown:
        arm_bars = [bar for bar in known if bar.arm == arm]
        figure.data.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": [bar.value for bar in arm_bars],
                "y": [bar.panel for bar in arm_bars],
                "marker": _bar_marker(look(frame.style(arm), frame.theme), frame.theme),
                "name": plain_text(arm),
                "hovertemplate": f"{plain_text(arm)}<br>%{{y}}: %{{x:.4~g}}<extra></extra>",
            }
        )
    if reference is not None and known:
        line = {"color": muted(frame.theme), "width": 1, "dash": "dash"}
        figure.add_line(line, x0=reference, x1=reference, y0=0, y1=1, xref="x", yref="paper")
    figure.n_total = figure.n_shown = len(known)
    return figure


def _bar_marker(looks: Look, theme: Theme) -> dict[str, Any]:
    if not looks.symbol:
        return {"color": looks.colour}
    shape, size = _HATCHES[looks.symbol]
    pattern = {"shape": shape, "size": size, "solidity": 0.3, "fillmode": "overlay", "fgcolor": ground(theme)}
    return {"color": looks.colour, "pattern": pattern}


GAMES = Kind("games", shape="bars", draw=_draw)
