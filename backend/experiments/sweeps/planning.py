"""What a sweep or a study does next: a pure function of its rows.

All configurations get their seeds in rounds: the first of each, then the second, and so on. Once all of a
round have ended, a race compares the configurations; those that are worse than another get no further seed.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from backend.specs.states import ENDED, RunState
from backend.specs.sweep import Budget, Racing
from backend.statistics.racing import worse


class SweepLimits(Protocol):
    """What bounds the runs of a sweep or a study: part of its specification."""

    @property
    def max_seeds(self) -> int:
        """Seeds of each configuration, at most."""

    @property
    def initial_seeds(self) -> int:
        """Seeds of each configuration before the first comparison; all of them where nothing races."""

    @property
    def racing(self) -> Racing | None:
        """When worse configurations get no further seed; None: never."""

    @property
    def budget(self) -> Budget:
        """Limits after which no run is started."""

    @property
    def concurrency(self) -> int:
        """Runs that may be queued or running at the same time."""

    def seed_of(self, configuration: int, i: int) -> int:
        """Seed i, from 0, of a configuration."""


CHANGED = "changed"
"""The state of a member, or of a study's cell, whose run has ended and did not train as planned."""


@dataclass(frozen=True)
class Member:
    """A seed of a configuration."""

    configuration: int
    seed: int
    state: RunState | None
    """State of its run; None if that was deleted."""
    score: float | None = None
    agent_steps: int = 0
    is_changed: bool = False
    """Whether its run no longer trains as planned: somebody has resumed it with another limit, or changed its
    settings."""
    is_charged: bool = True
    """Whether the budget pays for it: not for a run that existed before, nor for one that could not start."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs or will run."""
        return self.state is None or self.state in ENDED

    @property
    def counted(self) -> float | None:
        """The score of a run that is finished as planned. Any other score cannot be compared."""
        return self.score if self.state == RunState.FINISHED and not self.is_changed else None


@dataclass(frozen=True)
class StoredMember:
    """A member with its run, if that exists."""

    member: Member
    run_id: str | None
    waiting: bool = False
    """Whether its run is queued again in its turn."""


@dataclass(frozen=True)
class SweepCounts:
    """How large a sweep is."""

    configurations: int
    active: int
    """Configurations that may get further seeds."""
    runs_of_eliminated: int
    """Runs of the others."""
    runs: Counter[str]
    """Runs by state; `deleted` for those that no longer exist, `changed` for those that have ended and did
    not train as planned."""


@dataclass
class Plan:
    """Changes to a sweep."""

    start: list[tuple[int, int]] = field(default_factory=list)
    """Configuration and seed of each run to start."""
    eliminated: dict[int, str] = field(default_factory=dict)
    """Configurations that get no further seed, with the reason."""
    looks: int = 0
    """Comparisons up to now, with those of this plan."""
    finished: str | None = None
    """Why the sweep has finished, if it has."""

    def changes(self, looks: int) -> bool:
        """Whether it changes a sweep with `looks` comparisons."""
        return bool(self.start or self.eliminated or self.finished or self.looks != looks)


def plan(
    spec: SweepLimits,
    active: Collection[int],
    members: Sequence[Member],
    *,
    looks: int,
    elapsed_s: float,
) -> Plan:
    """What a running sweep or study does next. Once a round has ended, configurations without a score are
    eliminated and, with racing, those that are worse than another.

    A study has no racing: its configurations are its arms on each environment, its seeds the draws.

    Args:
        spec: the sweep's or study's specification.
        active: configurations that may get further seeds.
        members: all that were started.
        looks: how often the configurations have been compared.
        elapsed_s: since the sweep was created.
    """
    own: dict[int, dict[int, Member]] = defaultdict(dict)
    for member in members:
        own[member.configuration][member.seed] = member
    remaining = sorted(active)
    result = Plan(looks=looks)
    while result.finished is None:
        n = min(spec.max_seeds, spec.initial_seeds + result.looks)
        wanted = [
            (number, seed)
            for i in range(n)
            for number in remaining
            if (seed := spec.seed_of(number, i)) not in own[number]
        ]
        n_open = sum(not member.has_ended for member in members)
        charged = [member for member in members if member.is_charged]
        reached = _reached(spec, charged, elapsed_s) if wanted else None
        if wanted and reached is None:
            free = max(0, spec.concurrency - n_open)
            if spec.budget.runs is not None:
                free = min(free, spec.budget.runs - len(charged))
            result.start = wanted[:free]
            return result
        if n_open:
            return result
        if wanted:
            result.finished = reached
            return result
        _compare(spec, remaining, own, result)
        remaining = [number for number in remaining if number not in result.eliminated]
        decided = bool(result.eliminated) and len(remaining) <= 1
        if decided or not remaining or spec.initial_seeds + result.looks > spec.max_seeds:
            result.finished = _outcome(remaining, active)
    return result


def _compare(
    spec: SweepLimits, active: Sequence[int], own: dict[int, dict[int, Member]], result: Plan
) -> None:
    """Take one look at the active configurations, whose seeds have all ended."""
    result.looks += 1
    scores = {
        number: np.array(
            [member.counted for member in own[number].values() if member.counted is not None], "f8"
        )
        for number in active
    }
    for number in active:
        if not len(scores[number]):
            result.eliminated[number] = "none of its runs has a score"
    if spec.racing is None:
        return
    scored = [number for number in active if len(scores[number])]
    for at in worse([scores[number] for number in scored], result.looks, spec.racing.confidence):
        confidence = f"{100 * spec.racing.confidence:g}% confidence"
        n = len(scores[scored[at]])
        result.eliminated[scored[at]] = f"worse than another after {n} seeds, with {confidence}"


def _reached(spec: SweepLimits, members: Sequence[Member], elapsed_s: float) -> str | None:
    """The limit of the budget that allows no further run."""
    budget = spec.budget
    if budget.runs is not None and len(members) >= budget.runs:
        return f"its budget of {budget.runs:,} runs is used up"
    if budget.agent_steps is not None and sum(member.agent_steps for member in members) >= budget.agent_steps:
        return f"its budget of {budget.agent_steps:,} agent steps is used up"
    if budget.wall_time_s is not None and elapsed_s >= budget.wall_time_s:
        return f"its time of {budget.wall_time_s:,.0f} s is over"
    return None


def _outcome(remaining: Collection[int], active: Collection[int]) -> str:
    if not remaining:
        return "no configuration has a score"
    if len(remaining) == 1 and len(active) > 1:
        return "all other configurations are eliminated"
    return "every remaining configuration has had all its seeds"
