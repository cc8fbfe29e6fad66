"""Request and response bodies of play sessions."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.db import PlaySession
from backend.schemas import Id, Page
from backend.specs.environments import ENVIRONMENTS
from backend.specs.fields import Schema, Strict, Text


class PlayRequest(Strict):
    """A session to open."""

    environment: Text = Field(max_length=200, examples=["ALE/Breakout-v5"])
    """Id of an environment with discrete actions."""
    every_frame: bool = False
    """Whether actions are read at every frame, not every four frames (Atari) as agents' are."""
    scripted: bool = False
    """Whether a script plays; a session opened with an API token is always scripted. Its games are recorded
    as `scripted`, never as `human_play`."""


class PlaySessionOut(Schema):
    """A session in which a person, or a script, plays."""

    id: Id
    """Id of the session."""
    user_id: Id
    """Id of the player."""
    player: str
    """Name of the player."""
    environment: str = Field(examples=["ALE/Breakout-v5"])
    """Id of the environment."""
    environment_config: dict[str, Any]
    """Settings of the environment."""
    action_names: list[str]
    """Names of the actions; a message of the stream names one by its index."""
    scripted: bool
    """Whether a script has opened it or has sent actions."""
    state: Literal["queued", "running", "ended"]
    """`queued`: no worker has claimed it yet; `running`: a worker plays it; `ended`."""
    waiting_reason: str | None
    """Why it waits; null unless it is queued."""
    end_reason: str | None
    """Why it has ended; null before."""
    host: str | None
    """Worker host that plays or played it."""
    created_at: datetime
    """When it was requested."""
    started_at: datetime | None
    """When a worker claimed it."""
    ended_at: datetime | None
    """When it ended."""

    @classmethod
    def of(cls, play: PlaySession, player: str, waiting_reason: str | None = None) -> "PlaySessionOut":
        """From the row of the session and the name of its player."""
        computed = {
            "player": player,
            "waiting_reason": waiting_reason,
            "action_names": list(ENVIRONMENTS[play.environment].action_names),
        }
        row = {name: getattr(play, name) for name in cls.model_fields if name not in computed}
        return cls.model_validate(row | computed)


class PlaySessionPage(Page):
    """A page of play sessions."""

    items: list[PlaySessionOut]
    """Sessions of this page, latest first."""
