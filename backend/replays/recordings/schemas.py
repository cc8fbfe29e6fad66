"""Response bodies of recordings."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.db import Recording
from backend.platform.schemas import Id, Number, Page
from backend.specs.fields import Schema
from backend.specs.recordings import Part, Turns


class GameSource(Schema):
    """The state of an episode from which a game goes on."""

    kind: Literal["episode", "recording"]
    """Whether it is an episode of a run, or a recording of a game."""
    id: Id
    """Id of the episode or recording, which may have been deleted."""
    run_id: Id | None = None
    """Id of the episode's run; null for a recording."""
    decision: int
    """Number of decisions before the state."""


class ActorOut(Schema):
    """Who has acted in a game."""

    kind: Literal["person", "script", "agent"]
    """Whether it is a person, a script of a person, or the agent of a run."""
    name: str | None
    """Name of the person or of the run; null if that has been deleted."""
    user_id: Id | None = None
    """Id of the person, or of whose script it is; null for an agent."""
    run_id: Id | None = None
    """Id of the agent's run; null for others."""
    agent_steps: int | None = None
    """Agent steps for which the agent was trained; null for others."""
    checkpoint_id: Id | None = None
    """Id of the agent's checkpoint; null for others, and for who played a recorded episode of training."""


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
    protocol: Literal["human_play", "practice", "scripted", "joint"]
    """`human_play`: a person has played in a browser. `practice`: a person has, but not all of it at the
    console's speed. `scripted`: a script has opened the session, or has
    sent actions. `joint`: it goes on from another episode, or an agent could act in it. None is ranked with
    scores of agents, and a joint game is the score of nobody."""
    source: GameSource | None
    """The state of an episode from which it goes on; null: it begins with its seed."""
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


class HumanReferenceOut(Schema):
    """The *human* reference of this installation in an environment without a published human score: the mean
    of a person over their games here. No score of an agent is ranked with it or normalised by it."""

    environment: str = Field(examples=["Labyrinth-Small-v0"])
    """Id of the environment."""
    protocol: Literal["human_play"] = "human_play"
    """Protocol of the games."""
    user_id: Id
    """Id of the person: whose mean is the highest of those who have finished at least 5 games."""
    player: str
    """Name of the person."""
    mean_return: Number = Field(examples=[12.4])
    """Mean true return of the person's finished games with the environment's own settings."""
    n_games: int = Field(examples=[20])
    """Number of these games."""
    n_frames: int
    """Their emulator frames."""
    seen_by_people: str | None = Field(examples=["a map of the maze"])
    """What people see beside the game that agents do not; null: nothing."""


class HumanReferences(Schema):
    """The *human* references of this installation."""

    items: list[HumanReferenceOut]
    """One for each environment that has one, by id."""


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
    speeds: list[list[float]]
    """Changes of the speed: emulator frame of the game, multiple of the console's. Empty: the console's speed
    throughout."""
    actors: list[ActorOut]
    """Who has acted; the first is the player."""
    turns: list[list[int]]
    """Who made the decisions, one stretch after the other: index in `actors`, number of decisions."""

    @classmethod
    def of(
        cls, recording: Recording, parts: Sequence[Part], actors: list[ActorOut], turns: Turns
    ) -> "RecordingTrace":
        """From the row of the recording, its parts, and who made their decisions."""
        return cls(
            seed=recording.seed,
            frames_per_step=recording.frames_per_step,
            action_names=recording.action_names,
            actions=[action for part in parts for action in part.actions],
            rewards=[reward for part in parts for reward in part.rewards],
            lives=[lives for part in parts for lives in part.lives],
            inputs=[list(change) for part in parts for change in part.inputs],
            speeds=[list(change) for part in parts for change in part.speeds],
            actors=actors,
            turns=[list(turn) for turn in turns],
        )
