"""Branches: continuations of a recorded episode from one of its decisions, and what came of them."""

from typing import Literal

from pydantic import Field

from backend.specs.fields import Frozen

MAX_CONTINUATIONS = 64
MAX_HORIZON = 5_000
"""Decisions of a continuation at most."""

End = Literal["terminated", "truncated", "horizon"]
"""How a continuation ends: by the environment, by the environment's time limit, or after the last decision
that was asked for."""


class BranchPlan(Frozen):
    """What the engine plays."""

    decision: int = Field(ge=0)
    """Number of the decision, from 0, before which the continuations part from the episode."""
    continuations: int = Field(ge=1, le=MAX_CONTINUATIONS)
    horizon: int = Field(ge=1, le=MAX_HORIZON)
    seed: int
    """Seed of the policy's random numbers, and of those of sticky actions."""
    first_action: int | None = None
    """Index of the action that every continuation begins with; None: the policy's own."""


class Continuation(Frozen):
    """One continuation, to its end."""

    rewards: list[float]
    """True reward of each decision."""
    end: End
    n_valued: int
    """Decisions whose rewards V predicts: fewer than all if the agent was trained with episodes that end with
    a life, and a life was lost."""
    last_value: float | None
    """V, or max Q, of the state after the last of those; None if that is a terminal one."""


class BranchOutcome(Frozen):
    """All continuations, and what the agent expected of the state that they begin in."""

    value: float
    """V, or max Q, of that state; Q of the first action where the plan has one and the agent learns Q."""
    policy: list[float]
    """pi or Q of each action, or the mean of a continuous action."""
    continuations: list[Continuation]


class Played(Frozen):
    """One continuation."""

    true_return: float
    discounted_return: float
    """Discounted sum of the rewards as the agent learns from them, as far as V predicts them, and of V after
    the last of them unless that state is terminal."""
    length_steps: int
    end: End
    n_valued: int
    """As in `Continuation`."""
    last_value: float | None


class EpisodeOutcome(Frozen):
    """How the recorded episode itself went on from the decision."""

    value: float | None
    """V, or max Q, that the agent recorded at the decision; None if it was not finite."""
    true_return: float
    discounted_return: float
    """As that of a continuation, to the end of the recording."""
    length_steps: int
    n_valued: int
    last_value: float | None = None
    """V of its last state but one, for the rewards after its end, if a limit has ended it."""


class Outcome(Frozen):
    """What came of all continuations."""

    value: float
    policy: list[float]
    continuations: list[Played]
