"""The runs of a study as plain data, and the score of one of them.

A score comes from the stored evaluations or from the training episodes, never from a mixture: a reducer is
given one of the two, and a run without such scores has none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from backend.statistics.estimates import Scores
from backend.statistics.means import trailing_means

WINDOW_EPISODES = 100
"""Training episodes whose mean return is the score of training."""
EVALUATION_EPISODES = 30
"""Minimum number of episodes of an evaluation whose score counts as reached."""

ScoreSource = Literal["evaluations", "training"]
"""evaluations: mean returns of stored evaluations. training: means of the last `WINDOW_EPISODES` returns."""
Axis = Literal["agent_steps", "wall_time_s"]
"""What a time is measured in; `wall_time_s` is training time, evaluation excluded."""


def _empty() -> Scores:
    return np.zeros(0)


@dataclass(frozen=True)
class Points:
    """The points of the score metric in order of time, one for each training episode."""

    agent_steps: Scores = field(default_factory=_empty)
    """f8[n]."""
    wall_time_s: Scores = field(default_factory=_empty)
    """f8[n]: training time, evaluation excluded."""
    returns: Scores = field(default_factory=_empty)
    """f8[n]: values that are not finite are left out of every score."""


@dataclass(frozen=True)
class EvaluationScore:
    """One stored evaluation of a run; all of a study's are of one protocol."""

    agent_steps: int
    wall_time_s: float
    mean_return: float
    n_episodes: int = EVALUATION_EPISODES
    best_kept: bool = False
    """Whether it evaluated the best parameters of training again, at its end, and not the last ones."""


@dataclass(frozen=True)
class History:
    """The scores of one run in order of time."""

    agent_steps: Scores
    wall_time_s: Scores
    scores: Scores
    trusted: npt.NDArray[np.bool_]
    """bool[n]: based on enough episodes to count as reaching a reference."""

    def axis(self, axis: Axis) -> Scores:
        """The times of the scores."""
        return self.agent_steps if axis == "agent_steps" else self.wall_time_s

    def highs(self) -> "History":
        """The trusted scores that exceed all trusted ones before, and the last score: the time to any score,
        the time to the peak and the last score are those of the whole history."""
        rows = np.flatnonzero(self.trusted)
        highest = np.maximum.accumulate(np.concatenate([[-np.inf], self.scores[rows]]))
        rows = rows[self.scores[rows] > highest[:-1]]
        last = len(self.scores) - 1
        if last >= 0 and (not len(rows) or rows[-1] != last):
            rows = np.append(rows, last)
        return History(self.agent_steps[rows], self.wall_time_s[rows], self.scores[rows], self.trusted[rows])


@dataclass(frozen=True)
class MemberRun:
    """A finished run of a study."""

    arm: str
    environment: str
    draw: int
    """Number of the draw in its cell: of the seed, or of the random setting."""
    points: Points = field(default_factory=Points)
    evaluations: tuple[EvaluationScore, ...] = ()
    setting: float | None = None
    """Value of the setting that the study draws or lists, such as the learning rate; runs with the same value
    differ by seed only."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Means of other metrics over the run, for `MeanOfTopByMetric`."""
    training: History | None = None
    """The scores of training, in place of those of `points`."""


def history(run: MemberRun, source: ScoreSource) -> History:
    """The scores of a run: its evaluations, the first at each agent step, or the mean return of the last
    `WINDOW_EPISODES` after each training episode."""
    if source == "training":
        return training_history(run.points) if run.training is None else run.training
    return evaluation_history(run.evaluations)


def evaluation_history(evaluations: Iterable[EvaluationScore]) -> History:
    """The first evaluation at each agent step: later ones are of other parameters, such as the best kept."""
    first: dict[int, EvaluationScore] = {}
    for evaluation in evaluations:
        if not evaluation.best_kept and np.isfinite(evaluation.mean_return):
            first.setdefault(evaluation.agent_steps, evaluation)
    ordered = [first[agent_steps] for agent_steps in sorted(first)]
    return History(
        np.array([evaluation.agent_steps for evaluation in ordered], float),
        np.array([evaluation.wall_time_s for evaluation in ordered], float),
        np.array([evaluation.mean_return for evaluation in ordered], float),
        np.array([evaluation.n_episodes >= EVALUATION_EPISODES for evaluation in ordered], bool),
    )


def training_history(points: Points) -> History:
    """The mean return of the last `WINDOW_EPISODES` after each training episode."""
    known = np.isfinite(points.returns)
    returns = points.returns[known]
    return History(
        points.agent_steps[known].astype(float),
        points.wall_time_s[known].astype(float),
        trailing_means(returns, WINDOW_EPISODES),
        np.arange(1, len(returns) + 1) >= WINDOW_EPISODES,
    )


def last_score(run: MemberRun, source: ScoreSource) -> float | None:
    """The score at the end of training; None if the run has none."""
    scores = history(run, source).scores
    return float(scores[-1]) if len(scores) else None


def peak_score(run: MemberRun, source: ScoreSource) -> float | None:
    """The run's own highest score from enough episodes, the last one if none is; None without any score."""
    of_run = history(run, source)
    scores = of_run.scores[of_run.trusted]
    return float(scores.max()) if len(scores) else last_score(run, source)


def best_kept_score(run: MemberRun) -> float | None:
    """The score of the best parameters of training, evaluated again at its end; None if there is none."""
    kept = [
        evaluation.mean_return
        for evaluation in run.evaluations
        if evaluation.best_kept and np.isfinite(evaluation.mean_return)
    ]
    return kept[-1] if kept else None


def time_to_score(run: MemberRun, reference: float, source: ScoreSource, axis: Axis) -> float | None:
    """When the run's score first reached `reference`; infinity if never, None if it has no scores."""
    of_run = history(run, source)
    if not len(of_run.scores):
        return None
    reached = np.flatnonzero((of_run.scores >= reference) & of_run.trusted)
    return float(of_run.axis(axis)[reached[0]]) if len(reached) else np.inf


def time_to_peak(run: MemberRun, source: ScoreSource, axis: Axis) -> float | None:
    """When the run first had its own highest score; None if it has no score from enough episodes."""
    of_run = history(run, source)
    trusted = np.flatnonzero(of_run.trusted)
    if not len(trusted):
        return None
    return float(of_run.axis(axis)[trusted[int(np.argmax(of_run.scores[trusted]))]])
