"""Comparisons as REST shows them."""

from typing import Literal

from pydantic import BaseModel

from backend.comparisons.statistics import Estimate
from backend.pagination import Page
from backend.runs.schemas import Number
from backend.specs.states import RunState

By = Literal["seed", "algorithm", "environment"]
Score = Literal["training", "evaluation"]
At = Literal["common", "end"]


class EstimateOut(BaseModel):
    """A number with its 95 % interval; null edges where a single run gives none, or it is not finite."""

    value: Number
    low: Number
    high: Number

    @classmethod
    def of(cls, estimate: Estimate) -> "EstimateOut":
        """From what was computed."""
        return cls(value=estimate.value, low=estimate.low, high=estimate.high)


class RunScore(BaseModel):
    """How good one run was."""

    run: str
    seed: int
    score: Number
    """Null where it has none at or before `at_agent_steps`."""
    agent_steps_to_threshold: Number
    wall_time_s_to_threshold: Number


class GroupStatistics(BaseModel):
    """Runs that differ in their seed alone."""

    id: str
    """As in `GET /series` and `GET /figures/seed_curve`."""
    name: str
    algorithm: str
    environment: str
    at_agent_steps: int | None
    """Where the runs are compared; null: each at its own end."""
    runs: list[RunScore]
    n: int
    """Runs that have a score."""
    iqm: EstimateOut | None
    """Interquartile mean of their scores; null where none has one."""
    n_reached: int
    """Runs that reached the threshold."""
    agent_steps_to_threshold: EstimateOut | None
    """Median over all its runs; its value is null where less than half of them reached the threshold."""
    wall_time_s_to_threshold: EstimateOut | None


class Improvement(BaseModel):
    """How likely a run of group `a` beats one of group `b` in the same world; ties count half."""

    a: str
    b: str
    probability: EstimateOut


class Comparison(BaseModel):
    """What `GET /comparisons` answers."""

    score: Score
    at: At
    threshold: float | None
    method: str
    """How the intervals were made."""
    groups: list[GroupStatistics]
    improvements: list[Improvement]
    """Of each two groups with two scores or more in one world, the one with the higher IQM as `a`."""


class RunGroup(BaseModel):
    """Runs of a list that are alike, as one row of it."""

    key: str
    """By seed as in `GET /series`; else the algorithm or the environment."""
    name: str
    algorithm: str | None
    """Null where they differ."""
    environment: str | None
    n: int
    states: dict[RunState, int]
    """How many are in each state."""
    runs: list[str]
    """Ids, the newest first; at most 100 of them."""
    n_scored: int
    score: EstimateOut
    """Mean of the scores with its 95 % interval (Student's t); null across worlds."""
    best_return: Number
    """Null across worlds."""
    agent_steps: int
    """Of all together."""


class RunGroupPage(Page[RunGroup]):
    """A page of groups, and how many there are on all pages."""

    total: int
