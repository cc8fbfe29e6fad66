"""The walk that finds N_A, N_P and N_T (section 4.3): a random change by one, kept or taken back by TPS."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backend.specs.algorithms.ga3c import MAX_THREADS


class Setting(NamedTuple):
    """How many there are of each."""

    n_actors: int
    n_predictors: int
    n_trainers: int


UNSETTLED = 0.25
"""Share of an interval, its beginning, in which the change itself is felt: not counted."""


class Adjustment:
    """Proposes settings and judges them by trainings a second (TPS).

    Beyond the paper, which gives no rule for noise: TPS is sampled several times an interval. More agents or
    threads are kept when the mean rose by at least one standard error of the difference; fewer are kept
    unless it fell by as much, for the same speed with less lag is better. After a change is taken back, the
    old setting is measured anew before the next, so that one lucky interval is no bar for ever.

    There is at least 1 of each, at most `MAX_THREADS` predictors and as many trainers, and at most
    `most_actors` agents, those that the run has claimed memory for (`Ga3cConfig.most_actors`).
    """

    def __init__(self, setting: Setting, rng: np.random.Generator, *, most_actors: int) -> None:
        self.setting = setting
        self._most = Setting(most_actors, MAX_THREADS, MAX_THREADS)
        self._rng = rng
        self._kept = setting
        self._reference: Sequence[float] | None = None

    def judge(self, tps: Sequence[float]) -> Setting:
        """End an interval under `setting`.

        Args:
            tps: samples of TPS in it, in order, at least 4.

        Returns:
            What to set for the next interval.
        """
        counted = tps[int(len(tps) * UNSETTLED) :]
        if self._reference is None or self.setting == self._kept or self._is_kept(counted):
            self._kept, self._reference = self.setting, counted
            self.setting = self._changed()
        else:
            self.setting, self._reference = self._kept, None
        return self.setting

    def _is_kept(self, tps: Sequence[float]) -> bool:
        assert self._reference is not None
        before, after = np.asarray(self._reference), np.asarray(tps)
        error = np.sqrt(before.var(ddof=1) / len(before) + after.var(ddof=1) / len(after))
        rise = after.mean() - before.mean()
        more = sum(self.setting) > sum(self._kept)
        return bool(rise >= error) if more else bool(rise > -error)

    def _changed(self) -> Setting:
        """Another setting within the bounds, by one of one of them."""
        neighbours = [
            self._kept._replace(**{name: n + by})
            for (name, n), most in zip(self._kept._asdict().items(), self._most, strict=True)
            for by in (1, -1)
            if 1 <= n + by <= most
        ]
        return neighbours[self._rng.integers(len(neighbours))]
