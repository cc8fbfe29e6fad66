"""Values of a study over its environments, and mean curves of the runs that a rule chose."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.statistics.cells import Cell, Reduction, finite
from backend.statistics.estimates import Scores, interquartile_mean
from backend.statistics.members import Axis, MemberRun, ScoreSource, history


@dataclass(frozen=True)
class AcrossEnvironments:
    """The mean, the median and the interquartile mean of an arm's values over environments."""

    arm: str
    mean: float | None
    median: float | None
    iqm: float | None
    environments: tuple[str, ...]
    """The environments for which every arm has a finite value; only these count."""
    caption: str


def across_environments(reduction: Reduction) -> tuple[AcrossEnvironments, ...]:
    """Each arm's values over the environments for which all arms have a finite one."""
    arms = list(dict.fromkeys(cell.arm for cell in reduction.cells))
    names = list(dict.fromkeys(cell.environment for cell in reduction.cells))
    values = {(cell.arm, cell.environment): finite(cell.value) for cell in reduction.cells}
    common = tuple(name for name in names if all(values.get((arm, name)) is not None for arm in arms))
    caption = f"over the same {len(common)} of {len(names)} environments; {reduction.caption}"
    summaries = []
    for arm in arms:
        row = np.array([value for name in common if (value := values[arm, name]) is not None])
        mean, middle, iqm = (
            (float(row.mean()), float(np.median(row)), interquartile_mean(row)) if len(row) else (None,) * 3
        )
        summaries.append(AcrossEnvironments(arm, mean, middle, iqm, common, caption))
    return tuple(summaries)


def chosen_runs(runs: Sequence[MemberRun], cell: Cell) -> list[MemberRun]:
    """The runs that make up the value of a cell, the highest score first."""
    by_draw = {run.draw: run for run in runs if (run.arm, run.environment) == (cell.arm, cell.environment)}
    return [by_draw[draw] for draw in cell.members if draw in by_draw]


def mean_curve(
    runs: Sequence[MemberRun], axis: Axis, source: ScoreSource = "training", n_points: int = 200
) -> tuple[Scores, Scores]:
    """The mean score of some runs over time, each run's latest at or before it.

    Returns:
        times f8[n_points], from where all runs have a score to where the first of them ends, and mean scores
        f8[n_points]; both empty if there is no such time.
    """
    known = [curve for curve in (history(run, source) for run in runs) if len(curve.scores)]
    if not known:
        return np.zeros(0), np.zeros(0)
    start = max(float(curve.axis(axis)[0]) for curve in known)
    end = min(float(curve.axis(axis)[-1]) for curve in known)
    if end < start:
        return np.zeros(0), np.zeros(0)
    times = np.linspace(start, end, n_points)
    at = [curve.scores[np.searchsorted(curve.axis(axis), times, side="right") - 1] for curve in known]
    return times, np.mean(at, axis=0)
