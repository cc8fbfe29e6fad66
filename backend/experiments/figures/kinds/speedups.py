"""`speedups`: how much faster each arm is than the first one of its algorithm.

With `ratio_to`, an arm whose label is `method, variant`, each arm is compared with that method's of its own
variant: GA3C's with A3C's of the same network.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from backend.drawing.panels import Frame
from backend.experiments.figures.kind import Kind, StudyDrawing
from backend.experiments.figures.reducers import reducer_of, with_reference
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.tables import Column, Table, TableCell, TableRow
from backend.experiments.specs.study import ReductionRule
from backend.statistics.cells import Cell, Reduction
from backend.statistics.reducers import RatioTo


def _draw(runs: FigureRuns, loaded: None, frame: Frame) -> StudyDrawing:
    """The speed-up of each arm over the first one of its algorithm, for each environment and as their mean.

    The mean is over the environments where it is known so far of all arms of the algorithm that have one, so
    that the arms can be compared. A sentence gives it for the last arm of each algorithm, such as the one
    with the most actor-learners.
    """
    rule = runs.figure.reduction
    with_score, planned_with_score, scores = with_reference(runs)
    plain_rule = rule.model_copy(update={"ratio_to": None})
    plain = reducer_of(plain_rule, runs.protocols, scores, runs.setting)
    groups = list(_groups(runs))
    columns = [
        Column("Method", "", "name"),
        *(Column(title, "speed-up", "ours", unit="×") for title in runs.panels),
        Column("Mean", "over environments", "ours", unit="×"),
    ]
    rows, sentences, n_in, n_planned = [], [], 0, 0
    caption = ""
    for labels in groups:
        members = [member for member in with_score if member.arm in labels]
        planned = {key: n for key, n in planned_with_score.items() if key[0] in labels}
        reducer = RatioTo(labels[0], plain, inverse=_is_of_times(rule))
        reduction = reducer.reduce(members, planned)
        n_in += sum(cell.n for cell in reduction.cells)
        n_planned += sum(cell.planned for cell in reduction.cells)
        base = f"{_method(rule.ratio_to)} of its variant" if rule.ratio_to else "the first of its kind"
        prefix = replace(reducer, arm=base).prefix
        caption = caption or f"{prefix}{reduction.rule.removeprefix(reducer.prefix)}"
        common, means = mean_speedups(reduction)
        rows += [_row(runs, reduction, label, means.get(label)) for label in labels]
        sentences += _sentences(runs, reduction, labels[-1], means.get(labels[-1]), len(common))
    if rule.reference_arm is not None:  # an environment without its score has no cell yet
        n_planned = runs.n_planned
    caption = f"{caption}; {n_in} of {n_planned} runs are in"
    table = Table(columns, rows, [])
    return StudyDrawing(runs.figure, None, table, caption, " ".join(sentences), n_in, n_planned)


def _groups(runs: FigureRuns) -> Iterator[list[str]]:
    """Labels of the arms that are compared with each other, the one that is compared with first."""
    base = runs.figure.reduction.ratio_to
    by_key: dict[str, list[str]] = defaultdict(list)
    for arm in runs.arms:
        by_key[arm.algorithm if base is None else arm.label.partition(", ")[2]].append(arm.label)
    for labels in by_key.values():
        yield labels if base is None else sorted(labels, key=lambda label: _method(label) != _method(base))


def _method(label: str) -> str:
    """The part of an arm's label before its variant."""
    return label.partition(", ")[0]


def _is_of_times(rule: ReductionRule) -> bool:
    return rule.rule in ("time_to", "time_to_peak")


def _row(runs: FigureRuns, reduction: Reduction, label: str, mean: float | None) -> TableRow:
    """The speed-ups of an arm."""
    by_place: dict[tuple[str, str], Cell] = {(cell.arm, cell.environment): cell for cell in reduction.cells}
    cells = []
    for environment in runs.spec.environments:
        cell = by_place.get((label, environment))
        planned = runs.planned[label, environment] if cell is None else cell.planned
        cells.append(
            TableCell(None if cell is None else cell.value, n=0 if cell is None else cell.n, planned=planned)
        )
    return TableRow(label, [*cells, TableCell(mean)])


def _sentences(
    runs: FigureRuns, reduction: Reduction, label: str, mean: float | None, n_common: int
) -> list[str]:
    """The mean speed-up of an arm, or why it has none."""
    if mean is not None:
        n = len(runs.spec.environments)
        over = f" over {n_common} of {n} environments" if n_common < n else ""
        return [f"{label}: {mean:.2g}×{over}."]
    if reduction.cells and all(cell.n for cell in reduction.cells):
        is_of_times = _is_of_times(runs.figure.reduction)
        why = "not every run reached the reference" if is_of_times else "a value is missing or 0"
        return [f"{label}: no speed-up, since {why}."]
    return []


def mean_speedups(reduction: Reduction) -> tuple[set[str], dict[str, float]]:
    """The environments where all arms that have a value have one, and the mean of each arm over these."""
    by_arm: dict[str, dict[str, float]] = defaultdict(dict)
    for cell in reduction.cells:
        if cell.value is not None:
            by_arm[cell.arm][cell.environment] = cell.value
    common = set.intersection(*map(set, by_arm.values())) if by_arm else set[str]()
    if not common:
        return common, {}
    means = {label: float(np.mean([values[name] for name in common])) for label, values in by_arm.items()}
    return common, means


SPEEDUPS = Kind("speedups", shape="table", draw=_draw)
