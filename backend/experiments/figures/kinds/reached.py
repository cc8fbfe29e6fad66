"""`reached`: on how many environments each arm has reached a score, by hour."""

from collections.abc import Mapping, Sequence

from backend.drawing.figure import Figure
from backend.drawing.palette import look
from backend.drawing.panels import FRAME_PX, MAX_TICKS, ROW_PX, Frame
from backend.drawing.theme import layout, plain_text
from backend.experiments.figures.kind import Kind, StudyDrawing
from backend.experiments.figures.reducers import count_runs, reduce_runs, with_reference
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.words import finite_or_none, in_tables, time_title, time_unit
from backend.statistics.cells import Reduction
from backend.statistics.reducers import TimeToPeak

_MAX_LISTED = 5
"""Environments that a sentence names with their values."""


def _draw(runs: FigureRuns, loaded: None, frame: Frame) -> StudyDrawing:
    """On how many environments each arm reached a score, over its whole training."""
    reduction = reduce_runs(runs)
    known = [
        (cell.arm, value) for cell in reduction.cells if (value := finite_or_none(cell.value)) is not None
    ]
    is_time = reduction.unit == "s"
    ends = [
        row.wall_time_s if is_time else float(row.agent_steps)
        for (label, _, _), row in runs.by_draw.items()
        if row.counts and label in frame.arms
    ]
    furthest = max([*ends, *(value for _, value in known)], default=0.0)
    divisor, unit, x = 1.0, "agent steps", "Agent steps"
    if is_time:
        divisor, unit = time_unit(furthest)
        x = time_title(unit)
    reached = {label: [value / divisor for of, value in known if of == label] for label in frame.arms}
    n = len({cell.environment for cell in reduction.cells})
    drawing = reached_figure(
        reached, n_environments=n, furthest=furthest / divisor, x=x, unit=unit, frame=frame
    )
    has_runs = any(cell.n for cell in reduction.cells)
    finding = _finding(runs, reduction, frame.arms, divisor, unit) if has_runs else ""
    n_in, n_planned = count_runs(runs, reduction.cells)
    return StudyDrawing(runs.figure, drawing, None, reduction.caption, finding, n_in, n_planned)


def _finding(runs: FigureRuns, reduction: Reduction, labels: Sequence[str], divisor: float, unit: str) -> str:
    """Where each arm reached the score, and what the best scores of the reference arm were."""
    n = len({cell.environment for cell in reduction.cells})
    sentences = []
    for label in labels:
        where = [
            f"{runs.title(cell.environment)} after {in_tables((cell.value or 0.0) / divisor)} {unit}"
            for cell in reduction.cells
            if cell.arm == label and finite_or_none(cell.value) is not None
        ]
        listed = f": {', '.join(where)}" if 0 < len(where) <= _MAX_LISTED else ""
        sentences.append(f"{label} reached it on {len(where)} of {n} environments{listed}")
    rule = runs.figure.reduction
    _, _, scores = with_reference(runs)
    if (reference := rule.reference_arm) is not None and 0 < len(scores) <= _MAX_LISTED:
        time_to_peak = TimeToPeak("wall_time_s" if reduction.unit == "s" else "agent_steps", rule.source)
        peaks = time_to_peak.reduce(runs.members, runs.planned)
        where = []
        own_times = [peaks.value(reference, environment) for environment in scores]
        for (environment, score), time in zip(scores.items(), own_times, strict=True):
            after = "" if time is None else f" after {in_tables(time / divisor)} {unit}"
            where.append(f"{runs.title(environment)} {in_tables(score)}{after}")
        own = "" if own_times == [None] * len(own_times) else " (mean) and when its runs had theirs (median)"
        sentences.append(f"best scores of {reference}{own}: {', '.join(where)}")
    return "; ".join(sentences) + "."


def reached_figure(
    hours: Mapping[str, Sequence[float]],
    *,
    n_environments: int,
    furthest: float,
    x: str,
    unit: str,
    frame: Frame,
) -> Figure:
    """How many environments each arm's runs have reached a score on by each hour, as steps (Nair et al. 2015,
    Figure 5).

    Args:
        hours: by arm, one hour for each environment on which the score was reached; or another unit.
        n_environments: number of all environments.
        furthest: hours after which the longest run ended.
        x: title of the hours.
        unit: their unit, such as "h".
        frame: title, arms, theme and width.
    """
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    furthest = furthest or 1.0
    figure.layout |= {
        "height": ROW_PX + FRAME_PX,
        "hovermode": "closest",
        "showlegend": True,  # a single arm, too, is named nowhere else
        "xaxis": {"title": {"text": x}, "range": [0, furthest * 1.05], "nticks": MAX_TICKS},
        "yaxis": {"title": {"text": "Environments"}, "range": [0, n_environments * 1.05], "dtick": 1},
    }
    if n_environments > MAX_TICKS:
        figure.layout["yaxis"].pop("dtick")
    figure.layout.pop("hoversubplots", None)
    for arm, arm_hours in hours.items():
        looks = look(frame.style(arm), frame.theme)
        times = sorted(arm_hours)
        figure.add_scatter(
            x=[0.0, *times, furthest],
            y=[0, *range(1, len(times) + 1), len(times)],
            mode=looks.mode,
            marker=looks.marker,
            line={"color": looks.colour, "width": 2, "shape": "hv"},
            name=plain_text(arm),
            showlegend=True,
            hovertemplate=f"{plain_text(arm)}<br>%{{x:.3~g}} {unit}: %{{y}} environments<extra></extra>",
        )
        figure.n_total += len(times)
    figure.n_shown = figure.n_total
    return figure


REACHED = Kind("reached", shape="steps", draw=_draw, rules=("time_to", "time_to_peak"), plain_values="times")
