"""Episodes as REST shows them."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from backend.db import Episode, Job
from backend.pagination import Page
from backend.runs.schemas import Number


class EpisodeOut(BaseModel):
    """An episode whose replay was kept."""

    id: str
    run_id: str
    attempt: int
    kind: Literal["training", "evaluation"]
    source: str
    recorded_at: datetime
    agent_steps: int
    """Agent steps of the run when it ended."""
    frames: int
    wall_time_s: Number
    seed: int
    episode_return: Number
    """True, unclipped."""
    length_steps: int
    length_frames: int
    superseded: bool
    video: Literal["none", "queued", "running", "done", "failed"]
    """Whether its video is drawn."""

    @classmethod
    def of(cls, episode: Episode, job: Job | None) -> "EpisodeOut":
        """From its row, and that of the job that draws its video."""
        row = {name: getattr(episode, name) for name in cls.model_fields if name != "video"}
        video = "done" if episode.video else job.state if job else "none"
        return cls.model_validate(row | {"video": video})


class EpisodePage(Page[EpisodeOut]):
    """A page of episodes."""


class Trace(BaseModel):
    """What the agent did and thought, one entry a decision."""

    seed: int
    frames_per_step: int
    action_names: list[str]
    actions: list[int] | list[list[Number]]
    """Index of each action, or the numbers of a continuous one."""
    rewards: list[Number]
    """True reward of the decision."""
    values: list[Number]
    """V before the decision; the greatest Q where `action_values`."""
    policies: list[list[Number]]
    """Probability of each action; of a continuous one, its mean; Q of each where `action_values`."""
    action_values: bool
    """Whether the agent thinks in Q: `values` are then of its best action."""
    lives: list[int]


class VideoPending(BaseModel):
    """The video is being drawn: ask again."""

    job: str
    state: Literal["queued", "running"]
