"""Request and response bodies of play sessions."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from backend.db import PlaySession
from backend.platform.schemas import Id, Page
from backend.replays.recordings.schemas import GameSource
from backend.specs.fields import ULID, Schema, Strict, Text
from backend.specs.play import actions_of


class PlayFrom(Strict):
    """The state of a recorded episode from which the games of a session go on."""

    episode: Text | None = Field(default=None, pattern=ULID)
    """Id of an episode of a run, if no `recording` is given."""
    recording: Text | None = Field(default=None, pattern=ULID)
    """Id of the recording of a game, if no `episode` is given."""
    decision: int = Field(ge=0, le=2**31 - 1)
    """Number of decisions before the state: 0 is the episode's first one."""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.episode is None) == (self.recording is None):
            raise ValueError("give either an episode or a recording")
        return self


class PlayAgentRequest(Strict):
    """The agent to which the controls can be handed in a session."""

    run: Text = Field(pattern=ULID)
    """Id of its run."""
    checkpoint: Text | None = Field(default=None, pattern=ULID)
    """Id of a checkpoint of the run. By default the latest, or, if the session goes on from an episode of the
    same run, the one that was saved nearest to it."""


class PlayRequest(Strict):
    """A session to open."""

    environment: Text | None = Field(default=None, max_length=200, examples=["ALE/Breakout-v5"])
    """Id of an environment with discrete actions. Not needed with `from` or `agent`."""
    start: PlayFrom | None = Field(default=None, alias="from")
    """The state of an episode at which each of its games begins, with the settings of that episode. By
    default a game begins at the start of an episode."""
    agent: PlayAgentRequest | None = None
    """An agent that can act in the player's place. Games of such a session, and of one with `from`, are
    recorded as `joint`."""
    every_frame: bool = False
    """Whether actions are read at every frame, not every four frames (Atari) as agents' are."""
    scripted: bool = False
    """Whether a script plays; a session opened with an API token is always scripted. Its games are recorded
    as `scripted`, never as `human_play`."""


class PlayAgentOut(Schema):
    """The agent of a session."""

    run_id: Id
    """Id of its run."""
    checkpoint_id: Id
    """Id of its checkpoint."""
    agent_steps: int
    """Agent steps after which the checkpoint was saved."""

    @classmethod
    def of(cls, play: PlaySession) -> "PlayAgentOut | None":
        """From the row of a session; None too if that is damaged."""
        if play.agent is None or not play.actors:
            return None
        return cls.model_validate(play.agent | {"agent_steps": play.actors[-1].get("agent_steps") or 0})


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
    source: GameSource | None
    """The state of an episode at which its games begin; null: at the start of an episode."""
    agent: PlayAgentOut | None
    """The agent to which the controls can be handed; null: there is none."""
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
            "action_names": list(actions_of(play.environment, play.environment_config)),
            "agent": PlayAgentOut.of(play),
        }
        row = {name: getattr(play, name) for name in cls.model_fields if name not in computed}
        return cls.model_validate(row | computed)


class PlaySessionPage(Page):
    """A page of play sessions."""

    items: list[PlaySessionOut]
    """Sessions of this page, latest first."""
