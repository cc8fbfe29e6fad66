"""Adjusts N_A, N_P and N_T (section 4.3): a random change by one, kept or undone by its TPS.

Separate from `ga3c`, because it has no thread and no clock: tests and the benchmark give it the TPS.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backend.specs.algorithms.ga3c import MAX_THREADS


class ThreadCounts(NamedTuple):
    """Numbers of agents, predictors and trainers."""

    n_actors: int
    n_predictors: int
    n_trainers: int


UNSETTLED = 0.25
"""Fraction of an interval, at its start, that is not counted: the change itself has an effect then."""


class ThreadTuning:
    """Proposes thread counts and judges them by trainings per second (TPS).

    The paper gives no rule for noise. Here TPS is sampled several times per interval. More agents or threads
    are kept if the mean rose by at least one standard error of the difference; fewer are kept unless it fell
    by that much, because less lag is better at the same speed. After a change is undone, the old counts are
    measured again before the next change, so that one lucky interval does not block all others.

    There is at least 1 of each, at most `MAX_THREADS` predictors, at most `MAX_THREADS` trainers, and at most
    `max_actors` agents, for which the run has claimed memory (`Ga3cConfig.max_actors`).
    """

    def __init__(self, counts: ThreadCounts, rng: np.random.Generator, *, max_actors: int) -> None:
        self.counts = counts
        self._most = ThreadCounts(max_actors, MAX_THREADS, MAX_THREADS)
        self._rng = rng
        self._kept = counts
        self._reference: Sequence[float] | None = None

    def judge(self, tps: Sequence[float]) -> ThreadCounts:
        """End an interval under `counts`.

        Args:
            tps: samples of TPS in it, in order, at least 4.

        Returns:
            The counts of the next interval.
        """
        counted = tps[int(len(tps) * UNSETTLED) :]
        if self._reference is None or self.counts == self._kept or self._is_kept(counted):
            self._kept, self._reference = self.counts, counted
            self.counts = self._changed()
        else:
            self.counts, self._reference = self._kept, None
        return self.counts

    def _is_kept(self, tps: Sequence[float]) -> bool:
        assert self._reference is not None
        before, after = np.asarray(self._reference), np.asarray(tps)
        error = np.sqrt(before.var(ddof=1) / len(before) + after.var(ddof=1) / len(after))
        rise = after.mean() - before.mean()
        more = sum(self.counts) > sum(self._kept)
        return bool(rise >= error) if more else bool(rise > -error)

    def _changed(self) -> ThreadCounts:
        """Random counts within the bounds that differ by 1 in one number."""
        neighbours = [
            self._kept._replace(**{name: n + by})
            for (name, n), most in zip(self._kept._asdict().items(), self._most, strict=True)
            for by in (1, -1)
            if 1 <= n + by <= most
        ]
        return neighbours[self._rng.integers(len(neighbours))]
