"""Response bodies of comparisons."""

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue, model_validator

from backend.platform.schemas import Id, Number, Page
from backend.specs.fields import Schema, Strict
from backend.specs.run_fields import MAX_SEEDS, Origin
from backend.specs.states import RunState
from backend.statistics.estimates import Estimate
from callboard.known_tags import RunUnit

Score = Literal["training", "evaluation"]
At = Literal["common", "end"]
LeftOut = Literal["repeated", "broke_off", "early"]
"""repeated: another run with the same randomness counts. broke_off: it failed, was lost or was stopped before
the step at which it is compared. early: its score is that of the first, short episodes."""
GroupSort = Literal[
    "name", "n", "score", "best_return", "agent_steps", "created_at",
    "-name", "-n", "-score", "-best_return", "-agent_steps", "-created_at",
]  # fmt: skip


class EstimateOut(Schema):
    """A number with its 95 % interval; null bounds for too few runs, or if not finite."""

    value: Number
    """The estimate itself."""
    low: Number
    """Lower bound of the interval."""
    high: Number
    """Upper bound of the interval."""

    @classmethod
    def of(cls, estimate: Estimate) -> "EstimateOut":
        """From a computed estimate."""
        return cls(value=estimate.value, low=estimate.low, high=estimate.high)

    @classmethod
    def point(cls, value: float | None) -> "EstimateOut":
        """A number without an interval."""
        return cls(value=value, low=None, high=None)


class RunScore(Schema):
    """The score of one run."""

    run: Id
    """Id of the run."""
    seed: int
    """Seed of the run."""
    score: Number = Field(examples=[17.4])
    """Score of the run; null if it has none at or before `at_agent_steps`."""
    counted: bool
    """Whether it is a sample of its group."""
    left_out: LeftOut | None
    """Why it is none, if it has a score: `repeated`: another run of its lineage counts (a run, its forks and
    theirs are one sample), or another of its seed by a deterministic method; `broke_off`: it failed, was lost
    or was stopped before the step at which it is compared; `early`: its score is that of the first, short
    episodes, for most agent steps are those of episodes that had not ended."""
    depends_on: list[Id]
    """Other runs that this depends on: the one that sets `at_agent_steps`, and the one that counts in its
    place."""
    agent_steps_to_threshold: Number
    """Agent steps at which the run first reached the threshold; null if it did not, without a
    threshold, or if its steps are not agent steps."""
    wall_time_s_to_threshold: Number
    """Training time in seconds at which the run first reached the threshold; null if it did not, or without a
    threshold."""


class GroupStatistics(Schema):
    """Runs that differ in their seed alone."""

    id: str
    """Id of the group, as in `GET /series` and `GET /figures/seed_curve`."""
    name: str = Field(examples=["lr 0.001 · nₑ 8"])
    """Name of the group: what distinguishes its runs from those of the other groups of this answer."""
    algorithm: str = Field(examples=["paac"])
    """Algorithm of its runs: an id from `GET /algorithms`, or the name that scripts of external runs have
    chosen."""
    environment: str = Field(examples=["ALE/Pong-v5"])
    """Environment of its runs: an id from `GET /environments`, or the name that scripts of external runs have
    chosen."""
    protocol: str | None = Field(examples=["noop_starts"])
    """Protocol of the evaluations; null for training scores, and for external runs without evaluations."""
    external: bool
    """Whether its runs are trained elsewhere: they have no evaluations, only training returns can be
    compared, and the default settings of their environment are assumed."""
    at_agent_steps: int | None
    """Agent steps at which the runs are compared, or iterations; null: each at its last step."""
    step_unit: RunUnit
    """What `at_agent_steps` counts. Without agent steps, those to the threshold are not known."""
    runs: list[RunScore]
    """Score of each run of the group."""
    n: int
    """Number of counted runs with a score."""
    n_finished: int
    """Number of its runs that have finished, repeated ones excepted."""
    n_broken_off: int
    """Number of its runs that failed, were lost or were stopped, repeated ones excepted: with any, the group
    stands below those whose runs have all finished."""
    others: list[Id]
    """Further runs of the same config that are not among the requested ones; at most 100."""
    are_best: bool
    """Whether every run here has a higher score than all `others`: they look chosen by score, and a test
    takes them for a sample."""
    depends_on: list[Id]
    """Runs of other groups that any of this depends on: the one that sets `at_agent_steps`, and `others`."""
    iqm: EstimateOut | None
    """Interquartile mean of the scores, without an interval; null if no run has one."""
    median: EstimateOut | None
    """Median of the scores with its interval (from 5 scores on); null if no run has one."""
    n_reached: int
    """Number of counted runs that reached the threshold."""
    agent_steps_to_threshold: EstimateOut | None
    """Median agent steps over its counted runs; its value is null if less than half of them reached the
    threshold."""
    wall_time_s_to_threshold: EstimateOut | None
    """Median training time in seconds over its counted runs; its value is null if less than half of them
    reached the threshold."""


class Improvement(Schema):
    """Two groups in the same environment compared."""

    a: str
    """Id of the group with the higher interquartile mean."""
    b: str
    """Id of the group with the lower interquartile mean."""
    probability: EstimateOut
    """Probability that a run of `a` scores higher than one of `b`, without an interval; ties count half."""
    difference: EstimateOut
    """Median of all differences of a score of `a` and one of `b`. Its 95 % interval exists from 4 runs a side
    and is not corrected for the number of comparisons."""
    p_value: float
    """P-value of the exact two-sided permutation test of `probability`."""
    p_adjusted: float
    """`p_value` after Holm's correction for the number of `improvements`."""
    better: str | None
    """The group with significantly higher scores (`p_adjusted` below 0.05); null if no difference is
    significant."""
    seeds_to_differ: int | None
    """Runs a side from which a difference could be significant; null if the runs at hand are enough."""
    depends_on: list[Id]
    """Runs of neither group that this depends on: those of the other `improvements`, by whose number and
    p-values `p_adjusted` is corrected, and the one that sets `at_agent_steps`."""


class MissingSeeds(Schema):
    """How many seeds a group lacks for a verdict."""

    group: str
    """Id of the group."""
    n: int
    """Further seeds that it needs, besides those that are queued or train."""
    n_queued: int
    """Its runs that are queued or train and do not count yet, also those that are not compared here."""
    run: Id | None
    """A run whose config `POST /comparisons/seeds` can queue more seeds of; null for external runs, and for
    those whose settings changed during training."""


class BestGroup(Schema):
    """Which group of an environment is best, and what is missing to decide it."""

    environment: str
    """Environment of the groups."""
    group: str
    """Id of the group with the highest interquartile mean; one whose runs have not all finished only if there
    is no other."""
    rival: str | None
    """Id of the group that it is compared with: the baseline, else the next best; null if there is none. The
    result is that of `improvements`."""
    seeds: int | None
    """Seeds in each of the two that would decide; null if that is decided, or cannot be known: the scores
    favour neither, or overlap and are too few to say, or more than 50 were needed."""
    are_fewest: bool
    """Whether `seeds` is how many a verdict needs at least; otherwise it is how many find a difference like
    that of the scores at hand with a probability of 80 % (Noether 1987)."""
    missing: list[MissingSeeds]
    """What each of the two lacks; empty without `seeds`."""


class MoreSeeds(Strict):
    """Further seeds of one config."""

    run: Id
    """A run of the config."""
    n: int = Field(ge=1, le=MAX_SEEDS)
    """How many."""


class SeedsRequest(Strict):
    """Request body of `POST /comparisons/seeds`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [{"run": "01JD3QZ6W9K0Y5T8H2V4B7N1XC", "n": 2}]}]}
    )

    items: list[MoreSeeds] = Field(min_length=1, max_length=20)
    """A run of each config, and how many seeds are added to it; at most 100 in all."""

    @model_validator(mode="after")
    def _check_number(self) -> "SeedsRequest":
        n = sum(item.n for item in self.items)
        if n > MAX_SEEDS:
            raise ValueError(f"items: would create {n} runs; at most {MAX_SEEDS} are allowed")
        if len({item.run for item in self.items}) < len(self.items):
            raise ValueError("items: contains a run twice")
        return self


class Length(Schema):
    """Where the runs of one environment are compared, and why there."""

    environment: str
    """Environment of the runs."""
    at_agent_steps: int
    """The last score of the run that got least far. Runs that failed, were lost or were stopped, and those
    with early scores, do not count, unless there are no others."""
    run: Id
    """That run."""
    median_agent_steps: int
    """Median of the last scores of all runs that count here."""
    groups: list[str]
    """Ids of the groups that are compared there."""


class Comparison(Schema):
    """Response of `GET /comparisons`."""

    score: Score
    """What the groups are compared by: the mean return of the last 100 training episodes, or the latest
    evaluation."""
    at: At
    """Where runs are compared: `common` is the last agent step at which all runs of an environment have a
    score, `end` each run's own end."""
    threshold: float | None
    """Threshold of the request; null without one."""
    method: str
    """How intervals and p-values were computed."""
    lengths: list[Length]
    """One for each environment; empty if each run is compared at its own end."""
    baselines: list[str]
    """Ids of the groups that all others of their environments are compared with: the requested one, else the
    first; empty if all pairs are compared."""
    protocols: list[str]
    """Protocols under which any of the runs has been evaluated; empty for training scores."""
    shared_name: str = Field(examples=["PAAC · CartPole"])
    """What the names of all groups have in common, which they leave out; empty for a single group."""
    groups: list[GroupStatistics]
    """One entry for each group of runs."""
    best: list[BestGroup]
    """One for each environment in which a run has a score."""
    improvements: list[Improvement]
    """One per group and its baseline, or per pair, with at least two scores each in the same environment; `a`
    has the higher IQM."""
    n_comparisons: int
    """For how many comparisons p-values are corrected: also those with a group of several runs of which fewer
    than two have a score."""


class DifferentRun(Schema):
    """One of two runs whose differences are listed."""

    id: Id
    """Id of the run."""
    name: str = Field(examples=["lr 0.001"])
    """What it is called beside the other."""
    origin: Origin
    """Where it is trained: by a worker of this installation, or elsewhere."""
    algorithm: str = Field(examples=["paac"])
    """Its algorithm: an id from `GET /algorithms`, or the name that a script has chosen."""
    environment: str = Field(examples=["ALE/Pong-v5"])
    """Its environment: an id from `GET /environments`, or the name that a script has chosen."""
    seed: int
    """Its seed."""


class SettingDifference(Schema):
    """A setting that two runs have different values of."""

    path: str = Field(examples=["config.learning_rate"])
    """Its path in the runs' specifications."""
    title: str = Field(examples=["Learning rate"])
    """Its name, as pages show it."""
    a: JsonValue = Field(examples=[0.001])
    """Value of the first run; null if it has none."""
    b: JsonValue = Field(examples=[0.0003])
    """Value of the second run; null if it has none."""
    has_a: bool
    """Whether the first run has the setting."""
    has_b: bool
    """Whether the second run has the setting."""


class LiveChange(Schema):
    """A change of a setting during training."""

    run: Id
    """Id of the run."""
    agent_steps: int | None
    """Agent steps at which it took effect."""
    path: str = Field(examples=["config.learning_rate"])
    """Path of the setting."""
    title: str = Field(examples=["Learning rate"])
    """Its name, as pages show it."""
    value: JsonValue = Field(examples=[0.0001])
    """Value from then on."""


class FactDifference(Schema):
    """A fact of the code, host or command that differs."""

    name: str = Field(examples=["Commit"])
    """What it is."""
    a: str | None
    """Of the first run; null if it has none."""
    b: str | None
    """Of the second run; null if it has none."""


class PackageDifference(Schema):
    """A package of which two runs had different versions."""

    name: str = Field(examples=["torch"])
    """Name of the package."""
    a: str | None = Field(examples=["2.5.1"])
    """Version in the first run; null if it was not installed."""
    b: str | None = Field(examples=["2.6.0"])
    """Version in the second run; null if it was not installed."""


class PatchDifference(Schema):
    """A tracked file that differed from the commit otherwise in one run than in the other."""

    file: str = Field(examples=["train.py"])
    """Path of the file in its repository."""
    a: str | None
    """How it differed from the commit in the first run, at most 32 KiB; null if it did not."""
    b: str | None
    """How it differed from the commit in the second run, at most 32 KiB; null if it did not."""
    is_cut: bool
    """Whether either is longer."""


class RunDifferences(Schema):
    """Response of `GET /comparisons/diff`: what differs between two runs, and nothing that is equal. Code,
    packages, host and command are those of the latest attempt, or of the latest process of a script, and
    compared where both runs have reported them."""

    runs: list[DifferentRun]
    """Both runs, in the requested order."""
    summary: str = Field(examples=["Same except: Learning rate, 2 packages"])
    """All in a sentence."""
    config: list[SettingDifference]
    """Settings, limits, algorithm, environment and seed."""
    n_equal_settings: int
    """Number of settings that are equal."""
    live_changes: list[LiveChange]
    """All changes of settings during the training of either run that took effect."""
    code: list[FactDifference]
    """Versions of Callboard or Python, commit, and whether tracked files differed from it."""
    patch: list[PatchDifference]
    """How tracked files of scripts differed from the commit, by file; at most 100."""
    n_more_files: int
    """Number of further such files."""
    packages: list[PackageDifference]
    """Installed packages, by name."""
    n_equal_packages: int
    """Number of packages of equal versions."""
    host: list[FactDifference]
    """The machine, its processor and GPUs, and what the run used of them."""
    command: list[FactDifference]
    """The command line."""
    unknown: list[str]
    """What was not recorded, in sentences."""


class RunGroup(Schema):
    """A group of runs, as one row of the list."""

    key: str
    """Id of the group: by seed as in `GET /series`; otherwise the field's value; percent-encoded, ids of
    algorithms and environments excepted."""
    name: str = Field(examples=["PAAC on Pong"])
    """Name of the group: what its runs have in common."""
    algorithm: str | None = Field(examples=["paac"])
    """Algorithm of its runs; null where they differ."""
    environment: str | None = Field(examples=["ALE/Pong-v5"])
    """Environment of its runs; null where they differ."""
    n: int
    """Number of runs in the group."""
    states: dict[RunState, int]
    """Number of runs in each state."""
    runs: list[str]
    """Ids of its runs, latest first; at most 100."""
    n_scored: int
    """Number of runs with a score that are samples of their own, as in `GET /comparisons`: without those that
    broke off, and without early scores."""
    n_broken_off: int
    """Number of runs that failed, were lost or were stopped: with any, a list sorted by score has the group
    after those whose runs have all finished."""
    score: EstimateOut
    """Median of the scores with its 95 % interval (from 5 scores on); null across environments."""
    scores: list[float] = Field(examples=[[20.5, 21.0]])
    """The scores of these runs, latest first, at most 100; empty across environments."""
    best_return: Number = Field(examples=[21.0])
    """Highest return of a training episode of its runs; null across environments."""
    agent_steps: int = Field(examples=[3_000_000])
    """Agent steps of all its runs together that count these."""
    iterations: int = Field(examples=[0])
    """Iterations of its other runs together: external ones, whose agent steps are not known."""


class RunGroupPage(Page):
    """A page of groups, and the total number of groups."""

    items: list[RunGroup]
    """Groups of this page."""

    shared_name: str = Field(examples=["PAAC · CartPole"])
    """What the names of all groups have in common, which they leave out."""

    total: int = Field(examples=[128])
    """Number of groups, on all pages together."""
