"""Response bodies of comparisons."""

from typing import Literal

from pydantic import BaseModel

from backend.schemas import Number, Page
from backend.specs.states import RunState
from backend.statistics.estimates import Estimate

Score = Literal["training", "evaluation"]
At = Literal["common", "end"]


class EstimateOut(BaseModel):
    """A number with its 95 % interval; null bounds for too few runs, or if not finite."""

    value: Number
    low: Number
    high: Number

    @classmethod
    def of(cls, estimate: Estimate) -> "EstimateOut":
        """From a computed estimate."""
        return cls(value=estimate.value, low=estimate.low, high=estimate.high)

    @classmethod
    def point(cls, value: float | None) -> "EstimateOut":
        """A number without an interval."""
        return cls(value=value, low=None, high=None)


class RunScore(BaseModel):
    """The score of one run."""

    run: str
    seed: int
    score: Number
    """Null if it has none at or before `at_agent_steps`."""
    counted: bool
    """Whether it is a sample of its own: false if another run of its lineage counts (a run, its forks and
    theirs are one sample), or another of its seed by a deterministic method."""
    agent_steps_to_threshold: Number
    wall_time_s_to_threshold: Number


class GroupStatistics(BaseModel):
    """Runs that differ in their seed alone."""

    id: str
    """As in `GET /series` and `GET /figures/seed_curve`."""
    style: int
    """Its colour and dash: see `GET /figures/palette`."""
    name: str
    algorithm: str
    environment: str
    protocol: str | None
    """Protocol of the evaluations; null for training scores, and for external runs without evaluations."""
    external: bool
    """Whether its runs are trained elsewhere: they have no evaluations, only training returns can be
    compared, and the default settings of their environment are assumed."""
    at_agent_steps: int | None
    """Agent steps at which the runs are compared; null: each at its last step."""
    runs: list[RunScore]
    n: int
    """Number of counted runs with a score."""
    iqm: EstimateOut | None
    """Interquartile mean of the scores, without an interval; null if no run has one."""
    median: EstimateOut | None
    """Median of the scores with its interval (from 5 scores on); null if no run has one."""
    n_reached: int
    """Number of counted runs that reached the threshold."""
    agent_steps_to_threshold: EstimateOut | None
    """Median over its counted runs; its value is null if less than half of them reached the threshold."""
    wall_time_s_to_threshold: EstimateOut | None


class Improvement(BaseModel):
    """Two groups in the same environment compared."""

    a: str
    b: str
    probability: EstimateOut
    """Probability that a run of `a` scores higher than one of `b`, without an interval; ties count half."""
    difference: EstimateOut
    """Median of all differences of a score of `a` and one of `b`. Its 95 % interval exists from 4 runs a side
    and is not corrected for the number of comparisons."""
    p_value: float
    """P-value of the exact two-sided permutation test of `probability`."""
    p_adjusted: float
    """After Holm's correction for the number of `improvements`."""
    better: str | None
    """The group with significantly higher scores (`p_adjusted` below 0.05); null if no difference is
    significant."""
    seeds_to_differ: int | None
    """Runs a side from which a difference could be significant; null if the runs at hand are enough."""


class Comparison(BaseModel):
    """Response of `GET /comparisons`."""

    score: Score
    at: At
    threshold: float | None
    method: str
    """How intervals and p-values were computed."""
    protocols: list[str]
    """Protocols under which any of the runs has been evaluated; empty for training scores."""
    groups: list[GroupStatistics]
    improvements: list[Improvement]
    """One per pair of groups with at least two scores in the same environment; `a` has the higher IQM."""


class RunGroup(BaseModel):
    """A group of runs, as one row of the list."""

    key: str
    """By seed as in `GET /series`; otherwise the field's value; percent-encoded, ids of algorithms
    and environments excepted."""
    name: str
    algorithm: str | None
    """Null where they differ."""
    environment: str | None
    n: int
    states: dict[RunState, int]
    """Number of runs in each state."""
    runs: list[str]
    """Ids, latest first; at most 100."""
    n_scored: int
    """Number of runs with a score that are samples of their own, as in `GET /comparisons`."""
    score: EstimateOut
    """Median of the scores with its 95 % interval (from 5 scores on); null across environments."""
    best_return: Number
    """Null across environments."""
    agent_steps: int
    """Total of all runs."""


class RunGroupPage(Page[RunGroup]):
    """A page of groups, and the total number of groups."""

    total: int
