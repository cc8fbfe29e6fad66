"""Reducers of studies: from the runs of each cell to one value, by the rule that a paper uses.

A cell is an arm (say, n-step Q) on an environment. A reducer gives it a value, an interval where one is
defined, the runs it used and a caption in the paper's words, as in "mean of the best 5 of 50 runs".

Papers select differently, and the resulting optimistic bias differs too:

- Mnih et al. 2016 (A3C), Figure 1: mean of the best 5 of 50 runs; Figures 3 and 4: of the three best learning
  rates; Table 2: time to a reference score, relative to one actor-learner.
- Clemente et al. 2017 (PAAC), Table 1: best of three agents.
- Nair et al. 2015 (Gorila), section 5.2: best parameters of each training kept, mean of five trainings;
  Figures 3 and 4: normalised scores; Figure 5: time to DQN's score and to its own peak.
- Babaeizadeh et al. 2017 (GA3C), Figures 3 and 4: the top three configurations by TPS.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from backend.statistics.cells import (
    CENTRES,
    Cell,
    CellKey,
    Centre,
    Planned,
    Reduction,
    counts_of,
    finite,
    map_cells,
    mean_of_best,
    mean_of_best_settings,
    reduce_cells,
    runs_in_words,
)
from backend.statistics.members import (
    Axis,
    MemberRun,
    ScoreSource,
    best_kept_score,
    last_score,
    peak_score,
    time_to_peak,
    time_to_score,
)

_UNITS: Mapping[Axis, str] = {"agent_steps": "agent steps", "wall_time_s": "s"}
_TIMES: Mapping[Axis, str] = {"agent_steps": "agent steps", "wall_time_s": "training time"}


class MissingReferenceError(ValueError):
    """A reducer needs a reference for an environment that has none."""

    def __init__(self, environments: Sequence[str]) -> None:
        super().__init__(f"no reference for {', '.join(environments)}")
        self.environments = tuple(environments)


class UnknownArmError(ValueError):
    """A reducer compares with an arm that the study does not have."""

    def __init__(self, arm: str) -> None:
        super().__init__(f"there is no arm {arm!r} to compare with")
        self.arm = arm


class Reducer(Protocol):
    """A rule that gives each cell a value."""

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """The value of each cell.

        Args:
            runs: the runs that have ended.
            planned: how many runs each cell has; those of `runs` if omitted.

        Raises:
            MissingReferenceError: see `missing_references`.
            UnknownArmError: the reducer compares with an arm that is neither planned nor among the runs; not
                if there are none of both.
        """
        ...

    def missing_references(self, environments: Iterable[str]) -> tuple[str, ...]:
        """Those of the environments for which the rule needs a reference and has none."""
        ...


@dataclass(frozen=True)
class Reference:
    """The two scores that a normalised score lies between."""

    random: float
    """Scores 0 %."""
    target: float
    """Scores 100 %: a human's, or DQN's."""


class _NeedsNoReference:
    """Mixin: needs no reference."""

    def missing_references(self, environments: Iterable[str]) -> tuple[str, ...]:
        """Always empty."""
        return ()


@dataclass(frozen=True)
class Last(_NeedsNoReference):
    """The score at the end of training, over the runs of a cell."""

    source: ScoreSource = "evaluations"
    centre: Centre = "mean"

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        scores = "last evaluations" if self.source == "evaluations" else "last training scores"
        return reduce_cells(
            runs,
            planned,
            unit="score",
            score=lambda run: last_score(run, self.source),
            pick=CENTRES[self.centre],
            rule=lambda n: f"{self.centre} of the {scores} of {runs_in_words(n)}",
        )


@dataclass(frozen=True)
class Peak(_NeedsNoReference):
    """The highest score of each training, over the runs of a cell."""

    source: ScoreSource = "evaluations"

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        return reduce_cells(
            runs,
            planned,
            unit="score",
            score=lambda run: peak_score(run, self.source),
            pick=CENTRES["mean"],
            rule=lambda n: f"mean of the highest scores of {runs_in_words(n)}",
        )


@dataclass(frozen=True)
class BestKept(_NeedsNoReference):
    """The score of the best parameters of each training, evaluated again at its end (Gorila: mean of 5)."""

    centre: Centre = "mean"

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        return reduce_cells(
            runs,
            planned,
            unit="score",
            score=best_kept_score,
            pick=CENTRES[self.centre],
            rule=lambda n: f"{self.centre} of the best parameters of {runs_in_words(n)}, evaluated again",
        )


@dataclass(frozen=True)
class BestOf(_NeedsNoReference):
    """The highest score at the end of training among the draws 0 to k - 1 (PAAC: best of three)."""

    k: int
    source: ScoreSource = "evaluations"

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`. Runs with draw >= k are ignored and not counted as planned."""
        drawn = [run for run in runs if run.draw < self.k]
        counts = {key: min(n, self.k) for key, n in (planned or counts_of(drawn)).items()}
        return reduce_cells(
            drawn,
            counts,
            unit="score",
            score=lambda run: last_score(run, self.source),
            pick=lambda scored: mean_of_best(scored, 1),
            rule=lambda n: f"best of {runs_in_words(self.k if n is None else n)}",
        )


@dataclass(frozen=True)
class MeanOfBest(_NeedsNoReference):
    """The mean of the k highest scores at the end of training.

    With `of="settings"` the mean over the seeds of each setting comes first, and the k best settings count
    (A3C: the three best learning rates). Runs without a setting are then excluded.
    """

    k: int
    of: Literal["runs", "settings"] = "runs"
    source: ScoreSource = "evaluations"
    names: tuple[str, str] = ("learning rate", "learning rates")
    """What one setting and several are called."""

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        if self.of == "runs":
            return reduce_cells(
                runs,
                planned,
                unit="score",
                score=lambda run: last_score(run, self.source),
                pick=lambda scored: mean_of_best(scored, self.k),
                rule=lambda n: self._in_words("runs" if n is None else runs_in_words(n), n),
            )
        settings: dict[CellKey, set[float]] = defaultdict(set)
        for run in runs:
            if run.setting is not None:
                settings[run.arm, run.environment].add(run.setting)
        numbers = {len(values) for values in settings.values()}
        n_settings = numbers.pop() if len(numbers) == 1 else None
        words = self.names[n_settings != 1]
        words = words if n_settings is None else f"{n_settings} {words}"
        return reduce_cells(
            runs,
            planned,
            unit="score",
            score=lambda run: None if run.setting is None else last_score(run, self.source),
            pick=lambda scored: mean_of_best_settings(scored, self.k),
            rule=lambda n: self._in_words(words, n_settings),
        )

    def _in_words(self, all_of_them: str, n: int | None) -> str:
        if n is None:
            return f"mean of the best {self.k} {all_of_them}"
        return f"mean of the best {self.k} of {all_of_them}" if self.k < n else f"mean of {all_of_them}"


@dataclass(frozen=True)
class TimeTo:
    """When the score first reached the reference of the environment: the median over runs."""

    references: Mapping[str, float]
    axis: Axis = "wall_time_s"
    source: ScoreSource = "evaluations"
    reference_name: str = "the reference score"

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        _require(self, runs, planned)
        return reduce_cells(
            runs,
            planned,
            unit=_UNITS[self.axis],
            score=lambda run: time_to_score(run, self.references[run.environment], self.source, self.axis),
            pick=CENTRES["median"],
            rule=lambda n: f"{_TIMES[self.axis]} to {self.reference_name}, median of {runs_in_words(n)}",
        )

    def missing_references(self, environments: Iterable[str]) -> tuple[str, ...]:
        """See `Reducer.missing_references`."""
        return tuple(name for name in environments if name not in self.references)


@dataclass(frozen=True)
class TimeToPeak(_NeedsNoReference):
    """When the score first reached the run's own maximum: the median over runs."""

    axis: Axis = "wall_time_s"
    source: ScoreSource = "evaluations"

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        return reduce_cells(
            runs,
            planned,
            unit=_UNITS[self.axis],
            score=lambda run: time_to_peak(run, self.source, self.axis),
            pick=CENTRES["median"],
            rule=lambda n: (
                f"{_TIMES[self.axis]} to the run's own highest score, median of {runs_in_words(n)}"
            ),
        )


@dataclass(frozen=True)
class MeanOfTopByMetric(_NeedsNoReference):
    """The mean of the k highest means of a metric; `Cell.members` are their draws, the highest first."""

    k: int
    metric: str
    metric_name: str = ""

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        name = self.metric_name or self.metric
        return reduce_cells(
            runs,
            planned,
            unit=self.metric,
            score=lambda run: finite(run.metrics.get(self.metric)),
            pick=lambda scored: mean_of_best(scored, self.k),
            rule=lambda n: (
                f"top {self.k} " + ("runs" if n is None else f"of {runs_in_words(n)}") + f" by {name}"
            ),
        )


@dataclass(frozen=True)
class RatioTo:
    """The value of each cell by another rule, divided by that of an arm on the same environment.

    With `inverse`, the arm's divided by the cell's: the speed-up, where the values are times. There is no
    ratio where either value is missing, infinite or the divisor 0.
    """

    arm: str
    of: Reducer
    inverse: bool = False

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        known = {arm for arm, _ in [*(planned or {}), *counts_of(runs)]}
        if known and self.arm not in known:
            raise UnknownArmError(self.arm)
        reduction = self.of.reduce(runs, planned)

        def ratio(cell: Cell) -> float | None:
            value, base = finite(cell.value), finite(reduction.value(self.arm, cell.environment))
            numerator, denominator = (base, value) if self.inverse else (value, base)
            return None if numerator is None or not denominator else finite(numerator / denominator)

        return map_cells(
            reduction,
            self.prefix,
            "ratio",
            lambda cell: replace(cell, value=ratio(cell), low=None, high=None),
        )

    @property
    def prefix(self) -> str:
        """What stands before the words of the other rule."""
        return f"speed-up over {self.arm}" if self.inverse else f"relative to {self.arm}"

    def missing_references(self, environments: Iterable[str]) -> tuple[str, ...]:
        """See `Reducer.missing_references`."""
        return self.of.missing_references(environments)


@dataclass(frozen=True)
class Normalised:
    """The value of each cell by another rule, as 100 (score - random) / (target - random).

    There is no value where the target does not exceed random play: see `normalise`.
    """

    of: Reducer
    references: Mapping[str, Reference]
    target_name: str = "human"

    def reduce(self, runs: Sequence[MemberRun], planned: Planned | None = None) -> Reduction:
        """See `Reducer.reduce`."""
        _require(self, runs, planned)

        def normalised(cell: Cell) -> Cell:
            reference = self.references[cell.environment]
            value, low, high = (normalise(score, reference) for score in (cell.value, cell.low, cell.high))
            return replace(cell, value=value, low=low, high=high)

        return map_cells(self.of.reduce(runs, planned), f"{self.target_name}-normalised", "%", normalised)

    def missing_references(self, environments: Iterable[str]) -> tuple[str, ...]:
        """See `Reducer.missing_references`."""
        names = tuple(environments)
        lacking = {name for name in names if name not in self.references}
        lacking.update(self.of.missing_references(names))
        return tuple(name for name in names if name in lacking)


def normalise(score: float | None, reference: Reference) -> float | None:
    """100 (score - random) / (target - random); None without a score, or if target does not exceed random."""
    span = reference.target - reference.random
    return None if score is None or span <= 0 else 100 * (score - reference.random) / span


def _require(reducer: Reducer, runs: Sequence[MemberRun], planned: Planned | None) -> None:
    names = dict.fromkeys(name for _, name in [*(planned or {}), *counts_of(runs)])
    if missing := reducer.missing_references(names):
        raise MissingReferenceError(missing)
