"""`curves`: each arm's mean over its runs against training, a panel for each environment."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.axes import Axes
from backend.db import Series
from backend.drawing.catalogue import EPISODE_RETURN, X_AXES, describe
from backend.drawing.figure import Figure
from backend.drawing.palette import look
from backend.drawing.panels import MAX_TICKS, Frame, grid_figure, present
from backend.drawing.theme import faint, plain_text
from backend.experiments.cells.rows import CellRow
from backend.experiments.figures.kind import Kind, Problem, StudyDrawing
from backend.experiments.figures.mean_curves import SPREAD, ArmCurve, mean_curve
from backend.experiments.figures.reducers import count_runs, reduce_runs
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.words import (
    highest_and_lowest,
    in_tables,
    left_out_curves,
    time_title,
    time_unit,
)
from backend.experiments.specs.study import MAX_CURVES, StudyFigure, StudySpec
from backend.statistics.cells import CellKey, Reduction, runs_in

MAX_RUNS_PER_CURVE = 20
"""Maximum number of runs whose mean a curve is: the first by draw, or the best if the rule selects."""
_EPOCH_FRAMES = 4_000_000.0
_POINTS = 200
_BAND_OPACITY = 0.16
_DIFFERENT_TIMES = 1.1
"""Factor from which on the training times of arms are said to differ."""
_SMOOTHED_SHARE = 1 / 25
"""Width of the moving mean of a curve, as a share of its length."""
_X: dict[str, tuple[str, float, str]] = {
    **{name: (name, 1.0, X_AXES[name].axis) for name in ("agent_steps", "frames", "wall_time_s")},
    "hours": ("wall_time_s", 3600.0, time_title("h")),
    "epochs": ("frames", _EPOCH_FRAMES, "Epochs of 4 million frames"),
}
"""By horizontal axis: the column, its divisor and the title."""


@dataclass(frozen=True)
class _Curves:
    """The curves of a figure, and what is drawn of them in words."""

    reduction: Reduction
    curves: list[ArmCurve]
    x_title: str
    words: list[str]


def _problems(figure: StudyFigure, spec: StudySpec) -> Iterator[Problem]:
    if (figure.reduction.rule, figure.reduction.source) == ("last", "evaluations"):
        yield "reduction.source", "curves are of training: leave it out"


def _shows_times(figure: StudyFigure) -> bool:
    return figure.x in ("hours", "wall_time_s")


def _selects(figure: StudyFigure) -> bool:
    """Whether its rule chooses the runs that are drawn."""
    return figure.reduction.rule in ("best_of", "mean_of_best", "top")


def _metric(figure: StudyFigure) -> str:
    return figure.metrics[0] if figure.metrics else EPISODE_RETURN


def _chosen_rows(runs: FigureRuns, reduction: Reduction) -> dict[CellKey, list[CellRow]]:
    """The runs of each curve, those that train or were stopped included: those that its value is made of, or
    all by draw."""
    chosen = {}
    for cell in reduction.cells[:MAX_CURVES]:
        draws: Sequence[int] = cell.members if _selects(runs.figure) else range(runs.spec.draws.n)
        places = [(cell.arm, cell.environment, draw) for draw in draws]
        rows = [runs.by_draw[place] for place in places if place in runs.by_draw]
        known = [row for row in rows if row.run_id and row.agent_steps > 0 and not row.is_changed]
        chosen[cell.arm, cell.environment] = known
    return chosen


def _load(session: Session, runs: FigureRuns) -> _Curves:
    """Each arm's mean curve over the first of its runs, or over the best."""
    figure, metric = runs.figure, _metric(runs.figure)
    reduction = reduce_runs(runs)
    column, divisor, x_title = _X[figure.x]
    words = [f"lines: means over {100 * _SMOOTHED_SHARE:g} % of each run’s length, band {SPREAD.band}"]
    chosen = _chosen_rows(runs, reduction)
    if any(len(rows) > MAX_RUNS_PER_CURVE for rows in chosen.values()):
        which = "best" if _selects(figure) else "first"
        words.append(f"each curve is of the {which} {MAX_RUNS_PER_CURVE} runs")
    chosen = {key: rows[:MAX_RUNS_PER_CURVE] for key, rows in chosen.items()}
    all_rows = [row for rows in chosen.values() for row in rows]
    run_ids = [row.run_id for row in all_rows if row.run_id]
    by_run: dict[str | None, Series] = {
        series.run_id: series
        for series in metrics.list_series(session, run_ids, [metric])
        if series.n_points and not series.source
    }
    furthest = max((float(getattr(row, column)) for row in all_rows), default=0.0)
    if figure.x == "hours":
        divisor, symbol = time_unit(furthest)
        x_title = time_title(symbol)
    curves = []
    unit = describe(metric).divisor
    for (label, environment), rows in chosen.items():
        reached = {row.run_id: float(getattr(row, column)) for row in rows if row.run_id in by_run}
        members = [by_run[run_id] for run_id in reached]
        if not members:
            continue
        scales = {run_id: max(1e-9, x * _SMOOTHED_SHARE) for run_id, x in reached.items() if run_id}
        axes = Axes(column, _POINTS, smoothing="window", scale=None, scale_by_run=scales)
        grid = mean_curve(session, members, axes, tuple(reached.values()))
        curves.append(
            ArmCurve.of_grid(label, runs.title(environment), grid, len(members), x_unit=divisor, y_unit=unit)
        )
    if any(not curve.is_whole.all() for curve in curves):
        words.append("thin where not all runs have a value")
    n_unfinished = sum(not row.counts for row in all_rows if row.run_id in by_run)
    if n_unfinished:
        words.append(f"with {n_unfinished} unfinished run{'s' if n_unfinished > 1 else ''}")
    words += left_out_curves(MAX_CURVES, len(reduction.cells))
    return _Curves(reduction, curves, x_title, words)


def _draw(runs: FigureRuns, loaded: _Curves, frame: Frame) -> StudyDrawing:
    figure, reduction = runs.figure, loaded.reduction
    n_in, n_planned = count_runs(runs, reduction.cells)
    rule, finding = reduction.rule, highest_and_lowest(runs, reduction)
    if figure.metrics and figure.reduction.rule == "last":
        rule, finding = f"mean of {describe(figure.metrics[0]).axis}", ""
    elif figure.x == "hours":
        finding = " ".join(filter(None, [finding, _times_finding(runs)]))
    caption = "; ".join([rule, *loaded.words, runs_in(n_in, n_planned)])
    drawing = curves_figure(
        loaded.curves, panels=runs.panels, x=loaded.x_title, y=describe(_metric(figure)).axis, frame=frame
    )
    return StudyDrawing(figure, drawing, None, caption, finding, n_in, n_planned)


def _times_finding(runs: FigureRuns) -> str:
    """How long finished runs of the fastest and of the slowest arm trained on average, where that differs."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    shown = set(runs.labels)
    for (label, environment, _), row in runs.by_draw.items():
        if row.counts and label in shown:
            times[environment][label].append(row.wall_time_s)
    sentences = []
    for environment in runs.spec.environments:
        means = {label: float(np.mean(of_arm)) for label, of_arm in times[environment].items()}
        fastest, slowest = (min(means.values()), max(means.values())) if means else (0.0, 0.0)
        if slowest > _DIFFERENT_TIMES * fastest:
            seconds, unit = time_unit(slowest)
            label_of = {mean: label for label, mean in means.items()}
            ends = [f"{in_tables(end / seconds)} {unit} ({label_of[end]})" for end in (fastest, slowest)]
            sentences.append(f"{runs.title(environment)}: a run took on average from {ends[0]} to {ends[1]}.")
    return " ".join(sentences)


def curves_figure(
    curves: Sequence[ArmCurve], *, panels: Sequence[str], x: str, y: str, frame: Frame
) -> Figure:
    """Each arm's mean over its runs as a line, with its standard error as a band; one panel an environment.
    Where not all runs have a value, such as after the end of the first, the mean of the others is a thin line
    without a band.

    Args:
        curves: the curves, at most one of each arm in each panel.
        panels: titles of the environments, those without curves included.
        x: title of the horizontal axes.
        y: title of the vertical axes.
        frame: title, arms, theme and width.
    """
    shown = present(frame.arms, [curve.arm for curve in curves])
    furthest = max((float(curve.x[-1]) for curve in curves if len(curve.x)), default=0.0)
    form = "~s" if furthest >= 1_000 else "~g"  # not "2m" for 0.002
    axis = {"title": {"text": x}, "tickformat": form, "rangemode": "tozero", "nticks": MAX_TICKS}
    vertical = {"title": {"text": y}, "exponentformat": "SI"}
    figure, grid = grid_figure(frame, panels, axis, vertical, len(shown))
    figure.layout["legend"]["traceorder"] = "normal"  # Plotly would reverse it, since the bands are filled
    figure.n_total = sum(curve.n_runs for curve in curves)
    legend: set[str] = set()
    for curve in sorted(curves, key=lambda curve: frame.arms.index(curve.arm)):
        looks = look(frame.style(curve.arm), frame.theme)
        x_name, y_name = grid.axes(curve.panel)
        place = {"xaxis": x_name, "yaxis": y_name, "legendgroup": curve.arm}
        about = {"group": curve.arm, "source": curve.panel}
        if curve.n_runs > 1:
            edge = {
                "mode": "lines",
                "line": {"width": 0},
                "hoverinfo": "skip",
                "showlegend": False,
                "meta": about | {"kind": "range"},
            }
            low, high = (np.where(curve.is_whole, bound, np.nan) for bound in (curve.low, curve.high))
            figure.add_scatter(x=curve.x, y=low, **edge, **place)
            fill = {"fill": "tonexty", "fillcolor": faint(looks.colour, _BAND_OPACITY)}
            figure.add_scatter(x=curve.x, y=high, **edge, **fill, **place)
        of = f" (%{{customdata}} of {curve.n_runs} runs)" if curve.n_runs > 1 else ""
        line = {
            "x": curve.x,
            "customdata": curve.n,
            "name": plain_text(curve.arm),
            "hovertemplate": f"{plain_text(curve.arm)}<br>%{{x:.4{form}}}: %{{y:.5~g}}{of}<extra></extra>",
            **place,
        }
        figure.add_scatter(
            y=np.where(curve.is_whole, curve.mean, np.nan),
            mode=looks.mode,
            marker=looks.marker,
            line={"color": looks.colour, "width": 2},
            showlegend=curve.arm not in legend,
            meta=about | {"kind": "line"},
            **line,
        )
        if not curve.is_whole.all():
            rows = np.flatnonzero(~curve.is_whole)
            shown_rows = slice(rows[0], rows[-1] + 1)
            figure.add_scatter(
                y=np.where(curve.is_whole, np.nan, curve.mean)[shown_rows],
                mode="lines",
                line={"color": looks.colour, "width": 1},
                showlegend=False,
                meta=about | {"kind": "partial"},
                **line | {"x": curve.x[shown_rows], "customdata": curve.n[shown_rows]},
            )
        legend.add(curve.arm)
    return figure


CURVES = Kind(
    "curves",
    shape="curves",
    draw=_draw,
    load=_load,
    problems=_problems,
    rules=("last", "best_of", "mean_of_best", "top"),
    plain_values="scores",
    shows_times=_shows_times,
)
