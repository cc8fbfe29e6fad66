"""`scatter`: the score of each run over a setting."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from backend.drawing.figure import Figure
from backend.drawing.palette import look
from backend.drawing.panels import Frame, grid_figure, present
from backend.drawing.theme import faint, plain_text, tick_text
from backend.experiments.figures.kind import Kind, Problem, StudyDrawing
from backend.experiments.figures.reducers import count_runs, reduce_runs
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.words import in_tables, scores_of_runs
from backend.experiments.specs.study import StudyFigure, StudySpec
from backend.runs.runs.fields import setting_title
from backend.statistics.members import last_score


@dataclass(frozen=True)
class RunDot:
    """The score of one run by a setting."""

    arm: str
    panel: str
    run: str
    """Name of the run."""
    x: float | str
    y: float


def _problems(figure: StudyFigure, spec: StudySpec) -> Iterator[Problem]:
    if figure.setting is None:
        yield "setting", "is required by a scatter"


def _draw(runs: FigureRuns, loaded: None, frame: Frame) -> StudyDrawing:
    figure, path = runs.figure, runs.figure.setting or ""
    dots = []
    for member in runs.shown_members:
        row = runs.by_draw[member.arm, member.environment, member.draw]
        value, score = runs.setting_value(row, path), last_score(member, figure.reduction.source)
        if value is None or score is None:
            continue
        x = value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        name = f"{member.arm}, draw {member.draw}"
        dots.append(RunDot(member.arm, runs.title(member.environment), name, x, score))
    drawing = dots_figure(
        dots, panels=runs.panels, x=setting_title(path), y="Score", log=figure.log, frame=frame
    )
    n_in, n_planned = count_runs(runs, reduce_runs(runs).cells)
    caption = scores_of_runs(figure.reduction, n_in, n_planned)
    return StudyDrawing(figure, drawing, None, caption, _finding(dots, runs.panels), n_in, n_planned)


def _finding(dots: Sequence[RunDot], panels: Sequence[str]) -> str:
    """The highest score and its setting, and how many runs come near it."""
    sentences = []
    for panel in panels:
        panel_dots = [dot for dot in dots if dot.panel == panel]
        if panel_dots:
            best = max(panel_dots, key=lambda dot: dot.y)
            lowest = min(dot.y for dot in panel_dots)
            half = (best.y + lowest) / 2
            n = sum(dot.y >= half for dot in panel_dots)
            where = f"{best.x:.3g}" if isinstance(best.x, int | float) else best.x
            sentences.append(
                f"{panel}: highest score {in_tables(best.y)} at {where}; {n} of {len(panel_dots)} runs in "
                f"the upper half of the range of scores."
            )
    return " ".join(sentences)


def dots_figure(
    dots: Sequence[RunDot], *, panels: Sequence[str], x: str, y: str, log: bool | None, frame: Frame
) -> Figure:
    """The score of each run by a setting as a dot, in the colour of its arm; one panel an environment.

    Args:
        dots: the runs that have both values.
        panels: titles of the environments.
        x: title of the setting.
        y: title of the scores.
        log: whether the setting's axes are logarithmic; None: from a ratio of 20 on.
        frame: title, arms, theme and width.
    """
    shown = present(frame.arms, [dot.arm for dot in dots])
    axis = {"title": {"text": plain_text(x)}} | _setting_axis([dot.x for dot in dots], log=log)
    form = "" if axis["type"] == "category" else ":.4~g"
    vertical = {"title": {"text": y}, "exponentformat": "SI"}
    figure, grid = grid_figure(frame, panels, axis, vertical, len(shown))
    figure.n_total = figure.n_shown = len(dots)
    legend: set[str] = set()
    for arm in shown:
        looks = look(frame.style(arm), frame.theme)
        for panel in panels:
            panel_dots = [dot for dot in dots if (dot.arm, dot.panel) == (arm, panel)]
            if not panel_dots:
                continue
            x_name, y_name = grid.axes(panel)
            figure.add_scatter(
                x=[dot.x for dot in panel_dots],
                y=[dot.y for dot in panel_dots],
                text=[plain_text(dot.run) for dot in panel_dots],
                mode="markers",
                marker={
                    "color": faint(looks.colour, 0.55),
                    "size": 8,
                    "symbol": looks.symbol or "circle",
                    "line": {"color": looks.colour, "width": 1},
                },
                name=plain_text(arm),
                legendgroup=arm,
                showlegend=arm not in legend,
                hovertemplate=f"%{{text}}<br>%{{x{form}}}: %{{y:.5~g}}<extra></extra>",
                meta={"source": panel},
                xaxis=x_name,
                yaxis=y_name,
            )
            legend.add(arm)
    return figure


def _setting_axis(values: Sequence[float | str], *, log: bool | None) -> dict[str, Any]:
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers or len(numbers) < len(values):
        return {"type": "category"}
    low, high = min(numbers), max(numbers)
    is_log = low > 0 and (high >= 20 * low if log is None else log)
    ticks = sorted(set(numbers))
    # Random values have more digits than fit, and may lie close together.
    are_round = all(f"{tick:.2g}" == f"{tick:g}" or tick.is_integer() for tick in ticks)
    if len(ticks) > 6 or not are_round:
        if not is_log:
            return {"type": "linear"}
        # Plotly would label every digit of a decade, which overlap in narrow panels.
        ticks = _log_ticks(low, high)
    shown = {"tickvals": ticks, "ticktext": [tick_text(tick) for tick in ticks]}
    return {"type": "log" if is_log else "linear", **shown}


def _log_ticks(low: float, high: float) -> list[float]:
    """At least two ticks in a range above 0: powers of ten, else 1, 2 and 5 times them, else its ends."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [float(f"{factor}e{decade}") for decade in decades for factor in factors]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 2:
            return inside
    return sorted({low, high})


SCATTER = Kind(
    "scatter",
    shape="scatter",
    draw=_draw,
    problems=_problems,
    rules=("last",),
    plain_values="scores",
    shows_each_run=True,
)
