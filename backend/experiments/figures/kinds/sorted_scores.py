"""`sorted`: the scores of each arm's runs, from the best to the worst."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from backend.drawing.figure import Figure
from backend.drawing.palette import look
from backend.drawing.panels import MAX_TICKS, Frame, grid_figure, present
from backend.drawing.theme import plain_text
from backend.experiments.figures.kind import Kind, StudyDrawing
from backend.experiments.figures.reducers import count_runs, reduce_runs
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.words import highest_and_lowest, left_out_curves, scores_of_runs
from backend.experiments.specs.study import MAX_CURVES
from backend.statistics.members import last_score


def _draw(runs: FigureRuns, loaded: None, frame: Frame) -> StudyDrawing:
    """The scores of each arm's runs in order, a curve each."""
    rule, reduction = runs.figure.reduction, reduce_runs(runs)
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for member in runs.shown_members:
        score = last_score(member, rule.source)
        if score is not None:
            scores[member.arm, runs.title(member.environment)].append(score)
    drawn = dict(list(scores.items())[:MAX_CURVES])
    drawing = sorted_figure(drawn, panels=runs.panels, y="Score", frame=frame)
    n_in, n_planned = count_runs(runs, reduction.cells)
    caption = "; ".join([scores_of_runs(rule, n_in, n_planned), *left_out_curves(MAX_CURVES, len(scores))])
    finding = highest_and_lowest(runs, reduction, f"{rule.centre}s of runs")
    return StudyDrawing(runs.figure, drawing, None, caption, finding, n_in, n_planned)


def sorted_figure(
    scores: Mapping[tuple[str, str], Sequence[float]], *, panels: Sequence[str], y: str, frame: Frame
) -> Figure:
    """The scores of each arm's runs from the highest to the lowest; one panel an environment.

    Args:
        scores: scores by arm and title of the environment.
        panels: titles of the environments.
        y: title of the scores.
        frame: title, arms, theme and width.
    """
    shown = present(frame.arms, [arm for arm, _ in scores])
    axis = {"title": {"text": "Run, from the best"}, "rangemode": "tozero", "nticks": MAX_TICKS}
    vertical = {"title": {"text": y}, "exponentformat": "SI"}
    figure, grid = grid_figure(frame, panels, axis, vertical, len(shown))
    legend: set[str] = set()
    for (arm, panel), values in scores.items():
        looks = look(frame.style(arm), frame.theme)
        x_name, y_name = grid.axes(panel)
        ordered = sorted(values, reverse=True)
        figure.n_total += len(ordered)
        figure.add_scatter(
            x=list(range(1, len(ordered) + 1)),
            y=ordered,
            mode="lines+markers",
            marker={"color": looks.colour, "size": 6, "symbol": looks.symbol or "circle"},
            line={"color": looks.colour, "width": 1.5},
            name=plain_text(arm),
            legendgroup=arm,
            showlegend=arm not in legend,
            hovertemplate=f"{plain_text(arm)}<br>run %{{x}}: %{{y:.5~g}}<extra></extra>",
            meta={"source": panel},
            xaxis=x_name,
            yaxis=y_name,
        )
        legend.add(arm)
    figure.n_shown = figure.n_total
    return figure


SORTED = Kind(
    "sorted", shape="sorted", draw=_draw, rules=("last",), plain_values="scores", shows_each_run=True
)
