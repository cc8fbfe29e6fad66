"""How good a run was in the course of its training, by its training episodes or by its evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.db import Evaluation
from backend.metrics.chunks import Array, Columns

WINDOW_EPISODES = 100
"""Of a training score."""


@dataclass(frozen=True)
class Course:
    """Scores in the order in which they came."""

    agent_steps: Array
    """i8[n]."""
    wall_time_s: Array
    """f8[n]: training time, evaluation excluded."""
    scores: Array
    """f8[n]."""
    trusted: Array
    """bool[n]: of enough episodes to say that a threshold is reached."""

    @property
    def end(self) -> int:
        """The furthest agent steps; 0 where there is nothing."""
        return int(self.agent_steps.max()) if len(self.agent_steps) else 0

    def score_at(self, agent_steps: int) -> float | None:
        """The newest score at or before these agent steps, if there is one."""
        there = np.flatnonzero(self.agent_steps <= agent_steps)
        return float(self.scores[there[-1]]) if len(there) else None

    def reached(self, threshold: float) -> tuple[float, float]:
        """Agent steps and training time of the first trusted score that is at least `threshold`; else inf."""
        there = np.flatnonzero((self.scores >= threshold) & self.trusted)
        if not len(there):
            return np.inf, np.inf
        return float(self.agent_steps[there[0]]), float(self.wall_time_s[there[0]])


def by_training(rows: Columns) -> Course:
    """The mean return of the last `WINDOW_EPISODES` training episodes, after each of them.

    Args:
        rows: `agent_steps`, `wall_time_s` and `value` of every training episode.
    """
    known = np.isfinite(rows["value"])
    returns = rows["value"][known]
    total = np.concatenate([[0.0], np.cumsum(returns)])
    ends = np.arange(1, len(returns) + 1)
    starts = np.maximum(0, ends - WINDOW_EPISODES)
    return Course(
        agent_steps=rows["agent_steps"][known],
        wall_time_s=rows["wall_time_s"][known],
        scores=(total[ends] - total[starts]) / (ends - starts),
        trusted=ends >= WINDOW_EPISODES,
    )


def by_evaluation(done: Sequence[Evaluation]) -> Course:
    """The mean returns of evaluations, each of one checkpoint from fresh starts."""
    ordered = sorted(done, key=lambda one: one.agent_steps)
    return Course(
        agent_steps=np.array([one.agent_steps for one in ordered], "i8"),
        wall_time_s=np.array([one.wall_time_s for one in ordered], "f8"),
        scores=np.array([one.mean_return for one in ordered], "f8"),
        trusted=np.ones(len(ordered), bool),
    )
