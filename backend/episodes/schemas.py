"""Response bodies of episodes."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from backend.db import Episode, Job
from backend.schemas import Number, Page


class EpisodeOut(BaseModel):
    """An episode with a recorded replay."""

    id: str
    run_id: str
    attempt: int
    kind: Literal["training", "evaluation"]
    source: str
    recorded_at: datetime
    agent_steps: int
    """Agent steps of the run at the end of the episode."""
    frames: int
    wall_time_s: Number
    seed: int
    episode_return: Number
    """True, unclipped."""
    length_steps: int
    length_frames: int
    superseded: bool
    video: Literal["none", "queued", "running", "done", "failed"]
    """State of its video."""

    @classmethod
    def of(cls, episode: Episode, job: Job | None) -> "EpisodeOut":
        """From the rows of the episode and of the job that renders its video."""
        row = {name: getattr(episode, name) for name in cls.model_fields if name != "video"}
        video = "done" if episode.video else job.state if job else "none"
        return cls.model_validate(row | {"video": video})


class EpisodePage(Page[EpisodeOut]):
    """A page of episodes."""


class Trace(BaseModel):
    """The agent's actions, values and policies, one entry per agent step."""

    seed: int
    frames_per_step: int
    action_names: list[str]
    actions: list[int] | list[list[Number]]
    """Index of each action, or the components of a continuous action."""
    rewards: list[Number]
    """True reward of the agent step."""
    values: list[Number]
    """V before the action; max Q if `action_values`."""
    policies: list[list[Number]]
    """Probability of each action, or the mean of a continuous action; Q of each action if `action_values`."""
    action_values: bool
    """Whether the agent learns Q: `values` are then those of the greedy action."""
    lives: list[int]


class VideoPending(BaseModel):
    """The video is being rendered: retry later."""

    job: str
    state: Literal["queued", "running"]
