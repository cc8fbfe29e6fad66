"""`bars` and `stacked_bars`: means of metrics over the runs of each arm, by arm or by a setting.

With the rule `top` only the k arms with the highest means of its metric are drawn, of each value of the
setting if the figure has one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.drawing.bars import Bar, bars_figure
from backend.drawing.catalogue import FRAMES, describe
from backend.drawing.panels import Frame
from backend.experiments.cells import repository
from backend.experiments.figures.kind import Kind, Problem, StudyDrawing
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.words import in_tables
from backend.experiments.specs.study import Arm, StudyFigure, StudySpec
from backend.runs.runs.fields import setting_title
from backend.statistics.cells import CellKey


@dataclass(frozen=True)
class MetricMeans:
    """The mean of each metric over the runs of each arm and environment."""

    bars: list[Bar]
    caption: str
    finding: str
    n_in: int


def _problems(figure: StudyFigure, spec: StudySpec) -> Iterator[Problem]:
    if figure.setting in spec.draws.space:
        yield "setting", "is drawn, and a bar is of an arm: use a scatter, or arms"
    if not figure.metrics:
        yield "metrics", f"is required by {figure.kind}"


def load_means(session: Session, runs: FigureRuns) -> MetricMeans:
    """The means of a figure's metrics, of runs that still train too."""
    figure = runs.figure
    rows = [row for row in runs.shown_rows if row.run_id and not row.is_changed]
    run_ids = [row.run_id for row in rows if row.run_id]
    rule = figure.reduction
    top_metric = rule.metric if rule.rule == "top" else None
    metrics = dict.fromkeys([*figure.metrics, *filter(None, [top_metric])])
    values = repository.metric_means_of_runs(session, run_ids, list(metrics))
    means_of: dict[CellKey, list[dict[str, float]]] = defaultdict(list)
    for row in rows:
        means = values.get(row.run_id or "", {})
        if FRAMES in metrics and row.frames:
            means = {**means, FRAMES: float(row.frames)}
        means_of[runs.spec.arms[row.arm].label, row.environment].append(means)
    bars: list[Bar] = []
    label_of: dict[tuple[str, str], str] = {}
    for environment in runs.spec.environments:
        arms = runs.arms
        if top_metric is not None:
            arms = _top_arms(runs, environment, means_of, top_metric)
        for arm in arms:
            run_means = means_of[arm.label, environment]
            x = runs.setting_of_arm(arm, environment, figure.setting) if figure.setting else None
            category = arm.label if x is None or top_metric else _category(x, arm, runs.spec)
            if label_of.setdefault((environment, category), arm.label) != arm.label:
                category = f"{category} {arm.label}"  # equal settings: a bar would stand on another arm's
            for metric in figure.metrics:
                known = [means[metric] for means in run_means if metric in means]
                bars.append(
                    Bar(
                        arm.label,
                        runs.title(environment),
                        float(np.mean(known)) / describe(metric).divisor if known else None,
                        category,
                        describe(metric).title,
                        len(known),
                    )
                )
    n_in = sum(bool(means) for run_means in means_of.values() for means in run_means)
    caption = f"mean of each run's mean; {n_in} of {runs.n_planned} runs are in"
    if top_metric is not None:
        of_each = f" of each value of {setting_title(figure.setting)}" if figure.setting else ""
        caption = f"the {rule.k} arms{of_each} with the highest {describe(top_metric).title}; {caption}"
    return MetricMeans(bars, caption, _finding(bars, _parts(figure), runs.panels), n_in)


def _top_arms(
    runs: FigureRuns,
    environment: str,
    means_of: Mapping[CellKey, Sequence[Mapping[str, float]]],
    metric: str,
) -> list[Arm]:
    """The k arms with the highest means of a metric, of each value of the figure's setting."""
    figure = runs.figure
    groups: dict[Any, list[tuple[float, str]]] = defaultdict(list)
    for arm in runs.arms:
        known = [means[metric] for means in means_of[arm.label, environment] if metric in means]
        if known:
            value = runs.setting_of_arm(arm, environment, figure.setting) if figure.setting else None
            groups[value].append((float(np.mean(known)), arm.label))
    k = figure.reduction.k
    top = {label for ranked in groups.values() for _, label in sorted(ranked, reverse=True)[:k]}
    return [arm for arm in runs.arms if arm.label in top]


def _parts(figure: StudyFigure) -> list[str]:
    return [describe(metric).title for metric in figure.metrics]


def _category(value: Any, arm: Arm, spec: StudySpec) -> str:
    """A setting as a category; with the network, if arms differ in it."""
    text = f"{value:g}" if isinstance(value, int | float) else str(value)
    networks = {str(other.config.get("network", "")) for other in spec.arms}
    own = str(arm.config.get("network", ""))
    return f"{text} {own}" if len(networks) > 1 and own else text


def _finding(bars: Sequence[Bar], parts: Sequence[str], panels: Sequence[str]) -> str:
    """From which to which arm the first two metrics range on each environment."""
    sentences = []
    for panel in panels:
        for part in parts[:2]:
            known = [bar for bar in bars if (bar.panel, bar.part) == (panel, part) and bar.value is not None]
            if len(known) > 1:
                best = max(known, key=lambda bar: bar.value or 0.0)
                least = min(known, key=lambda bar: bar.value or 0.0)
                sentences.append(
                    f"{panel}, {part}: from {in_tables(least.value)} ({least.arm}) to "
                    f"{in_tables(best.value)} ({best.arm})."
                )
    return " ".join(sentences)


def _draw(runs: FigureRuns, means: MetricMeans, frame: Frame, *, stacked: bool) -> StudyDrawing:
    figure = runs.figure
    drawing = bars_figure(
        means.bars,
        panels=runs.panels,
        parts=_parts(figure),
        x=setting_title(figure.setting) if figure.setting else "",
        y=", ".join(dict.fromkeys(describe(metric).axis for metric in figure.metrics)),
        stacked=stacked,
        frame=frame,
    )
    return StudyDrawing(figure, drawing, None, means.caption, means.finding, means.n_in, runs.n_planned)


BARS = Kind("bars", shape="bars", draw=partial(_draw, stacked=False), load=load_means, problems=_problems)
STACKED_BARS = Kind(
    "stacked_bars",
    shape="stacked_bars",
    draw=partial(_draw, stacked=True),
    load=load_means,
    problems=_problems,
)
