"""Cells of a study: their values by a rule, and what every rule shares.

A cell is an arm (say, n-step Q) on an environment.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from backend.statistics.estimates import median
from backend.statistics.means import means
from backend.statistics.members import MemberRun

CellKey = tuple[str, str]
"""Arm and environment."""
Planned = Mapping[CellKey, int]
"""How many runs the study has in each cell, those that have not ended or are missing included."""
Centre = Literal["mean", "median"]


@dataclass(frozen=True)
class Cell:
    """The value of an arm on an environment."""

    arm: str
    environment: str
    value: float | None
    """None without runs that have a score, and where the rule has no value; infinite if not reached."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval; None for too few runs, and for a selection, which has no interval."""
    n: int
    """Runs that are in: those with a score of the kind that the reducer uses."""
    planned: int
    """Runs that the study has in the cell."""
    members: tuple[int, ...]
    """Draws of the runs whose scores make up the value: the highest score first, or the best setting's runs
    first."""
    caption: str
    """The rule and how many runs are in, as in "mean of the best 5 of 50 runs; 37 of 50 runs are in"."""


@dataclass(frozen=True)
class Reduction:
    """The cells of a study by one rule."""

    cells: tuple[Cell, ...]
    """In the order of the planned cells; those without runs included."""
    unit: str
    """Unit of the values: `score`, `%`, `agent steps`, `s`, `ratio` or the name of a metric."""
    rule: str
    """The rule in words, as in "mean of the best 5 of 50 runs"."""
    caption: str
    """The rule, and how many runs of the study are in."""

    def value(self, arm: str, environment: str) -> float | None:
        """The value of a cell; None without one."""
        for cell in self.cells:
            if (cell.arm, cell.environment) == (arm, environment):
                return cell.value
        return None


Scored = list[tuple[MemberRun, float]]
"""Runs that are in, with their scores, the highest first."""


@dataclass(frozen=True)
class Picked:
    """What a rule made of the runs of a cell."""

    value: float
    members: tuple[int, ...]
    low: float | None = None
    high: float | None = None


def _median_of(scored: Scored) -> Picked:
    estimate = median(np.array([score for _, score in scored]))
    return Picked(estimate.value, _draws(scored), estimate.low, estimate.high)


def _mean_of(scored: Scored) -> Picked:
    mean, _, error = means(np.array([[score] for _, score in scored]))
    half = finite(float(error.half_ci[0]))
    value = float(mean[0])
    ends = (None, None) if half is None else (value - half, value + half)
    return Picked(value, _draws(scored), *ends)


def mean_of_best(scored: Scored, k: int) -> Picked:
    """The mean of the k highest scores."""
    return Picked(float(np.mean([score for _, score in scored[:k]])), _draws(scored[:k]))


def mean_of_best_settings(scored: Scored, k: int) -> Picked:
    """The mean of the k best settings, each by the mean over its runs."""
    by_setting: dict[float, Scored] = defaultdict(list)
    for run, score in scored:
        if run.setting is not None:
            by_setting[run.setting].append((run, score))
    ranked = sorted(
        ((float(np.mean([score for _, score in group])), setting) for setting, group in by_setting.items()),
        key=lambda pair: (-pair[0], pair[1]),
    )[:k]
    members = tuple(draw for _, setting in ranked for draw in _draws(by_setting[setting]))
    return Picked(float(np.mean([mean for mean, _ in ranked])), members)


def _draws(scored: Scored) -> tuple[int, ...]:
    return tuple(run.draw for run, _ in scored)


CENTRES: Mapping[Centre, Callable[[Scored], Picked]] = {"mean": _mean_of, "median": _median_of}


def reduce_cells(
    runs: Sequence[MemberRun],
    planned: Planned | None,
    *,
    unit: str,
    score: Callable[[MemberRun], float | None],
    pick: Callable[[Scored], Picked],
    rule: Callable[[int | None], str],
) -> Reduction:
    """The cells of some runs: score each run, pick from those that have a score, and caption the result."""
    counts = dict(planned or {})
    by_cell: dict[CellKey, list[MemberRun]] = defaultdict(list)
    for run in runs:
        by_cell[run.arm, run.environment].append(run)
    for key, members in by_cell.items():
        counts[key] = max(counts.get(key, 0), len(members))
    cells = []
    for (arm, environment), n_planned in counts.items():
        scored = [(run, value) for run in by_cell[arm, environment] if (value := score(run)) is not None]
        scored.sort(key=lambda pair: (-pair[1], pair[0].draw))
        picked = pick(scored) if scored else None
        cells.append(
            Cell(
                arm,
                environment,
                value=picked.value if picked else None,
                low=picked.low if picked else None,
                high=picked.high if picked else None,
                n=len(scored),
                planned=n_planned,
                members=picked.members if picked else (),
                caption=f"{rule(n_planned)}; {runs_in(len(scored), n_planned)}",
            )
        )
    sizes = set(counts.values())
    n_in, total = sum(cell.n for cell in cells), sum(counts.values())
    in_words = rule(sizes.pop() if len(sizes) == 1 else None)
    return Reduction(tuple(cells), unit, in_words, f"{in_words}; {runs_in(n_in, total)}")


def map_cells(reduction: Reduction, prefix: str, unit: str, change: Callable[[Cell], Cell]) -> Reduction:
    """Every cell changed, with a prefix before the rule and each caption."""
    cells = tuple(replace(change(cell), caption=f"{prefix}: {cell.caption}") for cell in reduction.cells)
    return Reduction(cells, unit, f"{prefix}: {reduction.rule}", f"{prefix}: {reduction.caption}")


def counts_of(runs: Sequence[MemberRun]) -> dict[CellKey, int]:
    """How many of the runs are in each cell."""
    counts: dict[CellKey, int] = defaultdict(int)
    for run in runs:
        counts[run.arm, run.environment] += 1
    return dict(counts)


def finite(value: float | None) -> float | None:
    """The value, or None if it is missing or not finite."""
    return value if value is not None and np.isfinite(value) else None


def runs_in_words(n: int | None) -> str:
    """A number of runs, or all of a cell if it differs between cells."""
    if n is None:
        return "the runs of each cell"
    return "1 run" if n == 1 else f"{n} runs"


def runs_in(n: int, planned: int) -> str:
    """How many of the planned runs have a score, for a caption."""
    return f"{n} of {planned} runs {'is' if n == 1 else 'are'} in"
