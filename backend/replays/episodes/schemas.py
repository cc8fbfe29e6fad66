"""Response bodies of episodes."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from backend.db import Episode, Job
from backend.platform.schemas import Id, Number, Page
from backend.specs.fields import Schema


class EpisodeOut(Schema):
    """An episode with a recorded replay."""

    id: Id
    """Id of the episode."""
    run_id: Id
    """Id of the run that played the episode."""
    attempt: int
    """Number of the attempt that played the episode."""
    kind: Literal["training", "evaluation"]
    """Whether the episode was played for training or for an evaluation."""
    source: str
    """Actor that played the episode; empty for an evaluation."""
    recorded_at: datetime
    """When the episode was recorded in the database."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps of the run at the end of the episode."""
    frames: int = Field(examples=[4_000_000])
    """Emulator frames of the run at the end of the episode."""
    wall_time_s: Number = Field(examples=[294.5])
    """Training time of the run at the end of the episode, in seconds."""
    seed: int
    """Seed with which the environment was reset."""
    episode_return: Number = Field(examples=[20.0])
    """True, unclipped return."""
    length_steps: int = Field(examples=[1_733])
    """Agent steps of the episode."""
    length_frames: int = Field(examples=[6_932])
    """Emulator frames of the episode."""
    superseded: bool
    """Whether a later attempt resumed from before the episode."""
    video: Literal["none", "queued", "running", "done", "failed"]
    """State of its video."""
    observations: bool
    """Whether there is a video of the network's input."""

    @classmethod
    def of(cls, episode: Episode, job: Job | None) -> "EpisodeOut":
        """From the rows of the episode and of the job that renders its video."""
        files = {
            "video": "done" if episode.video else job.state if job else "none",
            "observations": episode.observations_sha256 is not None,
        }
        row = {name: getattr(episode, name) for name in cls.model_fields if name not in files}
        return cls.model_validate(row | files)


class EpisodePage(Page):
    """A page of episodes."""

    items: list[EpisodeOut]
    """Episodes of this page, in the requested order."""


class Trace(Schema):
    """The agent's actions, values and policies, one entry per agent step."""

    seed: int
    """Seed with which the environment was reset."""
    frames_per_step: int
    """Emulator frames of an agent step."""
    action_names: list[str]
    """Names of the discrete actions, or of the dimensions of a continuous one."""
    actions: list[int] | list[list[Number]]
    """Index of each action, or the components of a continuous action."""
    rewards: list[Number]
    """True reward of the agent step."""
    values: list[Number]
    """Value V before each action; max Q if `action_values`."""
    policies: list[list[Number]]
    """Probability of each action, or the mean of a continuous action; Q of each action if `action_values`."""
    action_values: bool
    """Whether the agent learns Q: `values` are then those of the greedy action."""
    lives: list[int]
    """Lives left at each agent step."""
    truncated: bool
    """Whether it ended at a limit of the environment, after which the agent expected further rewards."""
