"""Request and response bodies of evaluations."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.db import Evaluation, Job, Run
from backend.platform.schemas import Id, Number, Page
from backend.platform.text import Text
from backend.runs.catalogue.schemas import PublishedScoreOut
from backend.runs.runs.groups import human_reference
from backend.specs import protocols
from backend.specs.environments.custom import CustomConfig
from backend.specs.fields import ENVIRONMENT_PREFIX, Schema, Strict
from backend.specs.run_fields import MAX_ENVIRONMENT, Seed


class EvaluationRequest(Strict):
    """The body of `POST /runs/{id}/evaluations`."""

    protocol: Text | None = Field(
        default=None,
        max_length=50,
        description="Id of a protocol, such as `noop_starts`, or `agent_starts:NAME` for the start set NAME; "
        "default: that of the run's evaluations.",
    )
    episodes: int | None = Field(default=None, ge=1, le=1_000)
    """Number of episodes to play; default: 30, or one from each point of the protocol's start set."""
    seed: Seed = 0
    """Seed of the environment's and the agent's random numbers."""
    checkpoint: Text | None = Field(
        default=None, max_length=26, description="Id of a checkpoint of this run; default: the latest."
    )


Rate = Literal["each_decision", "10_hz"]


class RandomEvaluationRequest(Strict):
    """The body of `POST /evaluations/random`."""

    environment: Text = Field(max_length=MAX_ENVIRONMENT, examples=["ALE/Pong-v5"])
    """Id of the environment, from `GET /environments`."""
    environment_config: dict[str, Any] = Field(default_factory=dict)
    """Settings of the environment; those that are left out have their defaults."""
    protocol: Text | None = Field(
        default=None,
        max_length=50,
        description="Id of a protocol, such as `noop_starts`, or `agent_starts:NAME` for the start set NAME; "
        "default: `noop_starts_5min` in Atari games, as for the published scores, else the environment's.",
    )
    episodes: int = Field(default=30, ge=1, le=1_000)
    """Number of episodes to play."""
    seed: Seed = 0
    """Seed of the run, from which those of the environment and of the actions follow."""
    rate: Rate | None = None
    """How often it chooses an action. each_decision: whenever a trained agent would. 10_hz: in Atari games,
    at every sixth emulator frame. Default: 10_hz in Atari games, as for the published scores, else
    each_decision."""


class ProtocolOut(Schema):
    """One way to score an agent."""

    id: str = Field(examples=["noop_starts"])
    """Id of the protocol, which is part of a score's name."""
    title: str = Field(examples=["no-op starts"])
    """Name of the protocol in words, for legends and tables."""
    description: str
    """How episodes start and end under the protocol."""
    unavailable: str | None
    """Why it cannot be used; null if it can."""
    n_episodes: int = Field(examples=[30])
    """Number of episodes of an evaluation that names none: 30, or one from each point of its start set."""


class Protocols(Schema):
    """Response of `GET /runs/{id}/evaluations/protocols`."""

    default: str = Field(examples=["noop_starts"])
    """Id of the protocol of the run's own evaluations."""
    items: list[ProtocolOut]
    """Protocols of the run's environment."""


class EvaluationOut(Schema):
    """Scores of one checkpoint."""

    id: Id
    """Id of the evaluation."""
    run_id: Id
    """Id of the run whose checkpoint was evaluated."""
    attempt: int | None
    """Number of the attempt whose engine evaluated; null if the evaluation was requested."""
    requested_at: datetime
    """When the evaluation was requested or, by an engine, recorded."""
    protocol: str = Field(examples=["noop_starts"])
    """Id of the protocol."""
    n_episodes: int = Field(examples=[30])
    """Number of episodes."""
    seed: int
    """Seed of the environment's and the agent's random numbers."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps of the run at the checkpoint."""
    frames: int = Field(examples=[4_000_000])
    """Emulator frames of the run at the checkpoint."""
    wall_time_s: Number = Field(examples=[294.5])
    """Training time of the run at the checkpoint, in seconds."""
    checkpoint: str = Field(examples=["a1-s000001000000.pt"])
    """File name of the checkpoint."""
    returns: list[Number]
    """True, unclipped return of each episode; empty until the evaluation has finished."""
    lengths_frames: list[int]
    """Emulator frames of each episode; empty until the evaluation has finished."""
    max_frames: int | None = Field(examples=[18_000])
    """Emulator frames, no-ops included, after which the protocol ends an episode, or after which an episode
    of a custom environment without a limit is cut; null if neither is so."""
    n_at_max_frames: int | None = Field(examples=[0])
    """Number of episodes that it has ended so; null until the evaluation has finished, if the protocol has no
    such limit, or if episodes start in the middle of a game."""
    mean_return: Number = Field(examples=[18.3])
    """Mean of `returns`; null until the evaluation has finished."""
    human_normalised_pct: Number
    """100 (mean return - random) / (human - random); null unless both are published for its protocol and
    evaluation config."""
    human_normalised_by: list[PublishedScoreOut]
    """The published scores of a random agent and of a person by which `human_normalised_pct` is normalised;
    empty if it is null."""
    superseded: bool
    """Whether a later attempt resumed from before the checkpoint."""
    state: Literal["queued", "running", "done", "failed"]
    """State of the evaluation."""
    error: str | None
    """Why the evaluation failed; null if it did not."""

    @classmethod
    def of(cls, evaluation: Evaluation, job: Job | None, run: Run) -> "EvaluationOut":
        """From the rows of the evaluation, of its run and, if requested, of its job."""
        score = evaluation.mean_return
        reference = None if score is None else human_reference(run, evaluation.protocol)
        normalised = None if score is None or reference is None else reference.normalised_pct(score)
        row = {name: getattr(evaluation, name) for name in cls.model_fields if hasattr(evaluation, name)}
        state = "done" if evaluation.mean_return is not None or job is None else job.state
        by = [] if reference is None else [asdict(reference.random), asdict(reference.human)]
        max_frames, n_at_max_frames = protocols.at_limit(
            evaluation.protocol, evaluation.lengths_frames, _cut_frames(run)
        )
        extra = {
            "max_frames": max_frames,
            "n_at_max_frames": n_at_max_frames,
            "human_normalised_pct": normalised,
            "human_normalised_by": by,
            "state": state,
            "error": job.error if job else None,
        }
        return cls.model_validate(row | extra)


def _cut_frames(run: Run) -> int | None:
    """Frames after which an evaluation cuts an episode; None if the environment has a limit of its own."""
    if not run.environment.startswith(ENVIRONMENT_PREFIX):
        return None
    config = CustomConfig.model_validate(run.spec["environment_config"])
    return config.evaluation_cut_agent_steps if config.max_episode_agent_steps is None else None


class EvaluationPage(Page):
    """A page of evaluations."""

    items: list[EvaluationOut]
    """Evaluations of this page."""
