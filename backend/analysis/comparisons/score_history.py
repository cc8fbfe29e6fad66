"""Scores of a run over the course of its training, from training episodes or from evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.db import Evaluation
from backend.statistics.columns import Array, Columns
from backend.statistics.means import trailing_means

WINDOW_EPISODES = 100
"""Window of a training score."""
EVALUATION_EPISODES = 30
"""Episodes of an evaluation by which a score counts as reached."""


@dataclass(frozen=True)
class ScoreHistory:
    """Scores in order of time."""

    agent_steps: Array
    """i8[n]."""
    wall_time_s: Array
    """f8[n]: training time, evaluation excluded."""
    scores: Array
    """f8[n]."""
    trusted: Array
    """bool[n]: based on enough episodes to count as reaching a threshold."""

    @property
    def end(self) -> int:
        """The last agent steps; 0 if empty."""
        return int(self.agent_steps.max()) if len(self.agent_steps) else 0

    def score_at(self, agent_steps: int) -> float | None:
        """The latest score at or before these agent steps, or None."""
        rows = np.flatnonzero(self.agent_steps <= agent_steps)
        return float(self.scores[rows[-1]]) if len(rows) else None

    def reached(self, threshold: float) -> tuple[float, float]:
        """Agent steps and training time of the first trusted score of at least `threshold`; inf if there is
        none."""
        rows = np.flatnonzero((self.scores >= threshold) & self.trusted)
        if not len(rows):
            return np.inf, np.inf
        return float(self.agent_steps[rows[0]]), float(self.wall_time_s[rows[0]])


def by_training(rows: Columns, window: int = WINDOW_EPISODES) -> ScoreHistory:
    """The mean return of the last `window` training episodes, after each episode.

    Args:
        rows: `agent_steps`, `wall_time_s` and `value` of every training episode.
        window: number of values; 1 if they are means already.
    """
    known = np.isfinite(rows["value"])
    returns = rows["value"][known]
    return ScoreHistory(
        agent_steps=rows["agent_steps"][known],
        wall_time_s=rows["wall_time_s"][known],
        scores=trailing_means(returns, window),
        trusted=np.arange(1, len(returns) + 1) >= window,
    )


def by_evaluation(done: Sequence[Evaluation]) -> ScoreHistory:
    """Mean returns of evaluations under one protocol, one per checkpoint: the run's own, or without any those
    that users requested.

    Of several at the same agent steps the first counts: at the end of training DQN and Gorila evaluate their
    best parameters again, and that is not a score of the last parameters.
    """
    own = [evaluation for evaluation in done if evaluation.attempt is not None]
    first: dict[int, Evaluation] = {}
    for evaluation in sorted(
        own or done, key=lambda evaluation: (evaluation.agent_steps, evaluation.requested_at, evaluation.id)
    ):
        first.setdefault(evaluation.agent_steps, evaluation)
    ordered = list(first.values())
    return ScoreHistory(
        agent_steps=np.array([evaluation.agent_steps for evaluation in ordered], "i8"),
        wall_time_s=np.array([evaluation.wall_time_s for evaluation in ordered], "f8"),
        scores=np.array([evaluation.mean_return for evaluation in ordered], "f8"),
        trusted=np.array([evaluation.n_episodes >= EVALUATION_EPISODES for evaluation in ordered], bool),
    )
