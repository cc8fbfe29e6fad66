"""Request and response bodies of branches."""

from datetime import datetime
from typing import Literal

import numpy as np
from pydantic import Field

from backend.db import Branch, Job
from backend.platform.schemas import Id, Number, Page
from backend.specs.branches import MAX_CONTINUATIONS, MAX_HORIZON, End, EpisodeOutcome, Outcome, Played
from backend.specs.fields import ULID, Schema, Strict
from backend.specs.run_fields import Seed
from backend.statistics.means import t_975


class BranchRequest(Strict):
    """The body of `POST /branches`."""

    episode: str = Field(pattern=ULID)
    """Id of the recorded episode."""
    decision: int = Field(ge=0, le=2**31 - 1)
    """Number of the decision, from 0, before which the continuations part from the episode."""
    continuations: int = Field(default=16, ge=1, le=MAX_CONTINUATIONS)
    """How many continuations to play."""
    horizon: int = Field(default=500, ge=1, le=MAX_HORIZON)
    """Decisions after which a continuation that has not ended is cut off; V of its last state stands for the
    rest of its discounted return."""
    checkpoint: str | None = Field(default=None, pattern=ULID)
    """Id of the checkpoint that goes on, of any run in the same environment; default: that of the episode's
    run whose agent steps are nearest to the episode's."""
    first_action: int | None = Field(default=None, ge=0, le=1_000_000)
    """Index of the action that every continuation begins with; default: the policy's own."""
    seed: Seed | None = None
    """Seed of the policy's random numbers; default: a new one."""


class ContinuationOut(Schema):
    """One continuation."""

    true_return: Number = Field(examples=[7.0])
    """Sum of the true rewards from the decision on, undiscounted."""
    discounted_return: Number = Field(examples=[1.9])
    """Discounted sum of the rewards as the agent learns from them, which V predicts; where the continuation
    was cut off or truncated, with the discounted V of its last state."""
    length_steps: int = Field(examples=[500])
    """Decisions."""
    end: End
    """`terminated`: the environment ended it; `truncated`: its time limit did; `horizon`: it was cut off."""
    last_value: Number
    """V, or max Q, of the last state, with which the discounted return is bootstrapped; null without."""

    @classmethod
    def of(cls, played: Played) -> "ContinuationOut":
        """From the stored outcome."""
        return cls.model_validate(played.model_dump(exclude={"n_valued"}))


class MeanOut(Schema):
    """Mean of a return over the continuations."""

    mean: Number = Field(examples=[2.1])
    """The mean."""
    standard_error: Number = Field(examples=[0.2])
    """Its standard error; null for a single continuation."""
    half_interval: Number = Field(examples=[0.43])
    """Half of its 95 % interval by Student's t, t(n - 1) times the standard error; null for a single
    continuation."""

    @classmethod
    def of(cls, values: list[float]) -> "MeanOut":
        """Of at least one value."""
        n = len(values)
        error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
        half = None if error is None else t_975(n - 1) * error
        return cls(mean=float(np.mean(values)), standard_error=error, half_interval=half)


class BranchOutcomeOut(Schema):
    """What came of a branch."""

    value: Number = Field(examples=[2.4])
    """V, or max Q, of the policy that goes on, of the state at the decision; with a first action Q of that
    action if the agent learns Q."""
    policy: list[Number]
    """Probability, or Q, of each action there; the mean of a continuous action."""
    discounted_return: MeanOut
    """Of the discounted returns: what the value predicts."""
    true_return: MeanOut
    """Of the true returns."""
    continuations: list[ContinuationOut]
    """Each continuation."""


class EpisodeContinuationOut(Schema):
    """How the recorded episode itself went on from the decision."""

    value: Number
    """V, or max Q, that the agent recorded at the decision, of the parameters that it had then."""
    true_return: Number
    """Sum of its true rewards."""
    discounted_return: Number
    """Discounted sum of its rewards, as that of a continuation."""
    length_steps: int
    """Decisions to the end of the recording."""

    @classmethod
    def of(cls, branch: Branch) -> "EpisodeContinuationOut":
        """From the row of a branch; without values if they are damaged."""
        if not branch.episode_outcome:
            return cls(value=None, true_return=None, discounted_return=None, length_steps=0)
        outcome = EpisodeOutcome.model_validate(branch.episode_outcome)
        return cls.model_validate(outcome.model_dump(exclude={"n_valued"}))


class PolicyOut(Schema):
    """The policy that goes on."""

    checkpoint: Id
    """Id of its checkpoint."""
    run_id: Id
    """Id of the checkpoint's run."""
    run_name: str | None
    """Name of that run; null if it has been deleted."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps of that run at the checkpoint."""
    action_values: bool
    """Whether the agent learns Q: values are then max Q."""
    gamma: float = Field(examples=[0.99])
    """Its discount."""
    reward_clip: Number
    """Bound of the rewards that it learns from; null if they are not clipped."""


class BranchOut(Schema):
    """Continuations of a recorded episode from one of its decisions."""

    id: Id
    """Id of the branch."""
    episode_id: Id
    """Id of the episode."""
    run_id: Id
    """Id of the episode's run."""
    created_at: datetime
    """When it was requested."""
    state: Literal["queued", "running", "done", "failed"]
    """State of the job that plays it."""
    error: str | None
    """Why it could not be played; null if it could."""
    decision: int = Field(examples=[240])
    """Number of the decision, from 0, before which the continuations part from the episode."""
    n_continuations: int = Field(examples=[32])
    """How many continuations."""
    horizon: int = Field(examples=[500])
    """Decisions after which a continuation is cut off."""
    seed: int
    """Seed of the policy's random numbers."""
    first_action: int | None
    """Index of the action that every continuation begins with; null: the policy's own."""
    policy: PolicyOut
    """Whose actions the continuations take."""
    episode: EpisodeContinuationOut
    """How the episode itself went on."""
    outcome: BranchOutcomeOut | None
    """What came of it; null until it is played."""

    @classmethod
    def of(cls, branch: Branch, job: Job | None, run_names: dict[str, str]) -> "BranchOut":
        """From the rows of the branch and its job, and the names of runs by id."""
        row = {
            name: getattr(branch, name)
            for name in cls.model_fields
            if hasattr(branch, name) and name != "outcome"
        }
        state = "done" if branch.outcome is not None else job.state if job is not None else "failed"
        policy = PolicyOut(
            checkpoint=branch.checkpoint_id,
            run_id=branch.policy_run_id,
            run_name=run_names.get(branch.policy_run_id),
            agent_steps=branch.checkpoint_agent_steps,
            action_values=branch.action_values,
            gamma=branch.gamma,
            reward_clip=branch.reward_clip,
        )
        extra = {
            "state": state,
            "error": job.error if job is not None else None,
            "policy": policy,
            "episode": EpisodeContinuationOut.of(branch),
            "outcome": None if branch.outcome is None else _outcome(Outcome.model_validate(branch.outcome)),
        }
        return cls.model_validate(row | extra)


def _outcome(outcome: Outcome) -> BranchOutcomeOut:
    played = outcome.continuations
    return BranchOutcomeOut(
        value=outcome.value,
        policy=list(outcome.policy),
        discounted_return=MeanOut.of([continuation.discounted_return for continuation in played]),
        true_return=MeanOut.of([continuation.true_return for continuation in played]),
        continuations=[ContinuationOut.of(continuation) for continuation in played],
    )


class BranchPage(Page):
    """A page of branches."""

    items: list[BranchOut]
    """Branches of this page."""
