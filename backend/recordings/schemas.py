"""Response bodies of recordings."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.db import Recording
from backend.schemas import Id, Number, Page
from backend.specs.fields import Schema
from backend.specs.recordings import Part


class RecordingOut(Schema):
    """A game that a person or a script has played."""

    id: Id
    """Id of the recording."""
    session_id: Id
    """Id of the play session in which it was played."""
    user_id: Id
    """Id of the player."""
    player: str
    """Name of the player."""
    environment: str = Field(examples=["ALE/Breakout-v5"])
    """Id of the environment."""
    environment_config: dict[str, Any]
    """Settings of the environment."""
    protocol: Literal["human_play", "scripted"]
    """`human_play`: a person has played in a browser. `scripted`: a script has opened the session, or has
    sent actions. Neither is ranked with scores of agents."""
    seed: int
    """Seed with which the environment was reset."""
    frames_per_step: int
    """Emulator frames of a decision."""
    rom_sha256: str | None
    """SHA-256 of an Atari game's ROM; null for other environments."""
    versions: dict[str, str]
    """Versions of the packages that simulated the game."""
    started_at: datetime
    """When the game started."""
    ended_at: datetime | None
    """When it ended; null while it is played."""
    finished: bool
    """Whether it was played to its end; if not, its player has left, or its worker has died."""
    episode_return: Number = Field(examples=[31.0])
    """True return of what is recorded."""
    length_steps: int
    """Recorded decisions."""
    length_frames: int
    """Recorded emulator frames."""

    @classmethod
    def of(cls, recording: Recording, player: str) -> "RecordingOut":
        """From the row of the recording and the name of its player."""
        row = {name: getattr(recording, name) for name in cls.model_fields if name != "player"}
        return cls.model_validate(row | {"player": player})


class RecordingPage(Page):
    """A page of recordings."""

    items: list[RecordingOut]
    """Recordings of this page, latest first."""


class RecordingTrace(Schema):
    """The decisions of a recording, and what was pressed."""

    seed: int
    """Seed with which the environment was reset."""
    frames_per_step: int
    """Emulator frames of a decision."""
    action_names: list[str]
    """Names of the actions."""
    actions: list[int]
    """Index of the action of each decision."""
    rewards: list[float]
    """True reward of each decision."""
    lives: list[int]
    """Lives left after each decision."""
    inputs: list[list[int]]
    """Changes of the held action: emulator frame of the game, milliseconds since its start, action (-1:
    nothing)."""

    @classmethod
    def of(cls, recording: Recording, parts: Sequence[Part]) -> "RecordingTrace":
        """From the row of the recording and its parts."""
        return cls(
            seed=recording.seed,
            frames_per_step=recording.frames_per_step,
            action_names=recording.action_names,
            actions=[action for part in parts for action in part.actions],
            rewards=[reward for part in parts for reward in part.rewards],
            lives=[lives for part in parts for lives in part.lives],
            inputs=[list(change) for part in parts for change in part.inputs],
        )
