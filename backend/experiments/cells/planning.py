"""What an experiment does next: a pure function of its rows.

A configuration is an arm on an environment. All configurations get their draws in rounds: the first of each,
then the second, and so on. Once all of a round have ended, a race compares the configurations; those that are
worse than another get no further draw.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from backend.experiments.specs.sweep import Budget, Racing
from backend.specs.states import ENDED, RunState
from backend.statistics.racing import worse


@dataclass(frozen=True)
class Limits:
    """What bounds the runs of an experiment: part of its specification."""

    n_draws: int
    """Draws of each configuration, at most."""
    racing: Racing | None
    """When worse configurations get no further draw; None: never."""
    budget: Budget
    """Limits after which no run is started."""
    concurrency: int
    """Runs that may be queued or running at the same time."""

    @property
    def initial_draws(self) -> int:
        """Draws of each configuration before the first comparison; all of them where nothing races."""
        return self.n_draws if self.racing is None else self.racing.initial_seeds


CHANGED = "changed"
"""The state of a cell whose run has ended and did not train as planned."""


@dataclass(frozen=True)
class Member:
    """A draw of a configuration that has had its turn."""

    configuration: int
    draw: int
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


@dataclass
class Plan:
    """Changes to an experiment."""

    start: list[tuple[int, int]] = field(default_factory=list)
    """Configuration and draw of each run to start."""
    eliminated: dict[int, str] = field(default_factory=dict)
    """Configurations that get no further draw, with the reason."""
    looks: int = 0
    """Comparisons up to now, with those of this plan."""
    finished: str | None = None
    """Why the experiment has finished, if it has."""

    def changes(self, looks: int) -> bool:
        """Whether it changes an experiment with `looks` comparisons."""
        return bool(self.start or self.eliminated or self.finished or self.looks != looks)


def plan(
    limits: Limits,
    active: Collection[int],
    members: Sequence[Member],
    *,
    looks: int,
    elapsed_s: float,
) -> Plan:
    """What a running experiment does next. Once a round has ended, configurations without a score are
    eliminated and, with racing, those that are worse than another.

    Args:
        limits: the experiment's.
        active: configurations that may get further draws.
        members: all that were started.
        looks: how often the configurations have been compared.
        elapsed_s: since the experiment was created.
    """
    own: dict[int, dict[int, Member]] = defaultdict(dict)
    for member in members:
        own[member.configuration][member.draw] = member
    remaining = sorted(active)
    result = Plan(looks=looks)
    while result.finished is None:
        n = min(limits.n_draws, limits.initial_draws + result.looks)
        wanted = [(number, draw) for draw in range(n) for number in remaining if draw not in own[number]]
        n_open = sum(not member.has_ended for member in members)
        charged = [member for member in members if member.is_charged]
        reached = _reached(limits, charged, elapsed_s) if wanted else None
        if wanted and reached is None:
            free = max(0, limits.concurrency - n_open)
            if limits.budget.runs is not None:
                free = min(free, limits.budget.runs - len(charged))
            result.start = wanted[:free]
            return result
        if n_open:
            return result
        if wanted:
            result.finished = reached
            return result
        _compare(limits, remaining, own, result)
        remaining = [number for number in remaining if number not in result.eliminated]
        decided = bool(result.eliminated) and len(remaining) <= 1
        if decided or not remaining or limits.initial_draws + result.looks > limits.n_draws:
            result.finished = _outcome(remaining, active)
    return result


def _compare(limits: Limits, active: Sequence[int], own: dict[int, dict[int, Member]], result: Plan) -> None:
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
    if limits.racing is None:
        return
    scored = [number for number in active if len(scores[number])]
    for at in worse([scores[number] for number in scored], result.looks, limits.racing.confidence):
        confidence = f"{100 * limits.racing.confidence:g}% confidence"
        n = len(scores[scored[at]])
        result.eliminated[scored[at]] = f"worse than another after {n} seeds, with {confidence}"


def _reached(limits: Limits, members: Sequence[Member], elapsed_s: float) -> str | None:
    """The limit of the budget that allows no further run."""
    budget = limits.budget
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
