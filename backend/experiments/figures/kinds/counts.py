"""`counts`: one run's numbers of processes over training time, with a rate."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.db import Series
from backend.drawing.catalogue import X_AXES, describe
from backend.drawing.figure import Figure
from backend.drawing.palette import look
from backend.drawing.panels import FRAME_PX, LEGEND_ROW_PX, MAX_TICKS, ROW_PX, Frame
from backend.drawing.theme import layout, plain_text
from backend.experiments.figures.kind import Kind, Problem, StudyDrawing
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.words import in_tables
from backend.experiments.specs.study import StudyFigure, StudySpec
from backend.statistics.columns import Array

Line = tuple[str, str, Array, Array]
"""A metric, its title, times and values."""


def _problems(figure: StudyFigure, spec: StudySpec) -> Iterator[Problem]:
    if not figure.metrics:
        yield "metrics", "is required by counts"


def _load(session: Session, runs: FigureRuns) -> list[Line]:
    """The metrics of the first run that has them."""
    run_ids = [row.run_id for row in runs.shown_rows if row.run_id and not row.is_changed]
    by_run: dict[str, dict[str, Series]] = defaultdict(dict)
    for series in metrics.list_series(session, run_ids, runs.figure.metrics):
        if series.n_points and not series.source:
            by_run[series.run_id][series.metric] = series
    by_metric = next((by_run[run_id] for run_id in run_ids if run_id in by_run), {})
    chunks = metrics.live_chunks(session, [series.id for series in by_metric.values()])
    lines: list[Line] = []
    for metric in runs.figure.metrics:
        if metric not in by_metric:
            continue
        of_metric = chunks[by_metric[metric].id]
        read = metrics.points_of(session, of_metric, ("wall_time_s", "value"))
        times = np.concatenate([read[chunk.id]["wall_time_s"] for chunk in of_metric])
        values = np.concatenate([read[chunk.id]["value"] for chunk in of_metric])
        about = describe(metric)
        lines.append((metric, about.title, times, values / about.divisor))
    return lines


def _draw(runs: FigureRuns, lines: list[Line], frame: Frame) -> StudyDrawing:
    drawing = counts_figure(
        lines,
        x=X_AXES["wall_time_s"].axis,
        second=describe(runs.figure.metrics[-1]).axis,
        frame=frame,
    )
    finding = ""
    if lines:
        finding = "; ".join(f"{title} {range_in_words(values)}" for _, title, _, values in lines) + "."
    n_in, n_planned = min(1, len(lines)), len(runs.shown_rows)
    return StudyDrawing(runs.figure, drawing, None, "the first run", finding, n_in, n_planned)


def range_in_words(values: Array) -> str:
    """The least and the largest of the values that are finite, and the last value."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return in_tables(values[-1])
    least, largest, last = (in_tables(value) for value in (finite.min(), finite.max(), values[-1]))
    if least == largest:
        return last if last == least else f"{least}, {last} at the end"
    return f"between {least} and {largest}, {last} at the end"


def counts_figure(
    lines: Sequence[tuple[str, str, Array, Array]], *, x: str, second: str, frame: Frame
) -> Figure:
    """Numbers of processes of one run as steps, and a rate on an axis of its own at the right (Babaeizadeh et
    al. 2017, Figures 2 and 5).

    Args:
        lines: metric, title, x and values; the last one belongs to the second axis.
        x: title of the horizontal axis.
        second: title of the second axis.
        frame: title, theme and width; its arms are the titles of the lines.
    """
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    figure.layout |= {
        "height": ROW_PX + FRAME_PX + LEGEND_ROW_PX,
        "hovermode": "x unified",
        "showlegend": True,
        "xaxis": {"title": {"text": x}, "rangemode": "tozero", "nticks": MAX_TICKS},
        "yaxis": {"title": {"text": "Number"}, "rangemode": "tozero"},
        "yaxis2": {
            "title": {"text": plain_text(second)},
            "overlaying": "y",
            "side": "right",
            "rangemode": "tozero",
            "showgrid": False,
            "tickmode": "auto",  # not at the heights of the ticks at the left
        },
    }
    figure.layout.pop("hoversubplots", None)
    for number, (_, title, times, values) in enumerate(lines):
        is_rate = number == len(lines) - 1
        shape = {} if is_rate else {"shape": "hv"}
        figure.add_scatter(
            x=times,
            y=values,
            mode="lines",
            line={"color": look(number, frame.theme).colour, "width": 2, **shape},
            name=plain_text(title),
            yaxis="y2" if is_rate else "y",
            hovertemplate="%{y:.4~g}",
        )
        figure.n_total += len(times)
    figure.n_shown = figure.n_total
    return figure


COUNTS = Kind("counts", shape="counts", draw=_draw, load=_load, problems=_problems)
