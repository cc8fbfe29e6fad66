"""Recordings of played games: what the engine sends to its worker, and the worker stores."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from backend.specs.fields import Frozen

Count = Annotated[int, Field(ge=0)]


class Actor(Frozen):
    """Who has acted in a game."""

    kind: Literal["person", "script", "agent"]
    user_id: str | None = None
    """The person, or whose script it is."""
    run_id: str | None = None
    """Run of the agent. Below, how far it was trained, and its checkpoint, if one is known."""
    agent_steps: int | None = None
    checkpoint_id: str | None = None


class PlayedAgent(Frozen):
    """The checkpoint of the agent of a session of play."""

    run_id: str
    checkpoint_id: str


class PlayedFrom(Frozen):
    """The state of an episode from which the games of a session go on."""

    kind: Literal["episode", "recording"]
    id: str
    run_id: str | None = None
    decision: int


Turns = list[tuple[int, int]]
"""Who made the decisions, in order: pairs of an actor's number and how many decisions the actor made."""


def joined(turns: Iterable[tuple[int, int]]) -> Turns:
    """Turns in which no actor follows itself."""
    merged: Turns = []
    for actor, n in turns:
        if merged and merged[-1][0] == actor:
            merged[-1] = (actor, merged[-1][1] + n)
        elif n:
            merged.append((actor, n))
    return merged


def first_turns(turns: Turns, decisions: int) -> Turns:
    """The turns of the first decisions."""
    first: Turns = []
    for actor, n in turns:
        if decisions <= 0:
            break
        first.append((actor, min(n, decisions)))
        decisions -= n
    return first


def later_turns(turns: Turns, decisions: int) -> Turns:
    """The turns after the first decisions."""
    later: Turns = []
    for actor, n in turns:
        if n > decisions:
            later.append((actor, n - max(decisions, 0)))
        decisions -= n
    return later


class GameStart(Frozen):
    """What a game begins with."""

    seed: int
    frames_per_step: int
    action_names: list[str]
    rom_sha256: str | None
    versions: dict[str, str]
    restored_frames: Count = 0
    """Emulator frames of the decisions before the moment from which it goes on."""


class Part(Frozen):
    """Consecutive decisions of a game, with what was pressed meanwhile."""

    first_step: Count
    """Number of the first decision, from 0."""
    actions: list[int]
    rewards: list[float]
    """True rewards, one per decision."""
    lives: list[int]
    """Lives left after each decision."""
    n_frames: Count
    """Emulator frames of these decisions."""
    inputs: list[tuple[int, int, int]]
    """Changes of the held action: emulator frame of the game, milliseconds since its start, action (-1:
    nothing)."""
    turns: Turns = Field(default=[])
    """Who made the decisions; empty: all are the player's."""
    speeds: list[tuple[int, float]] = Field(default=[])
    """Changes of the speed: emulator frame of the game, multiple of the console's. A game begins with 1."""
    finished: bool = False
    """Whether the game is over."""
    left: bool = False
    """Whether the player has ended the game before it was over."""


class GameStarted(Frozen):
    """The engine's report that a game starts."""

    type: Literal["game"] = "game"
    game: GameStart


class GamePlayed(Frozen):
    """The engine's report of decisions of the present game."""

    type: Literal["part"] = "part"
    part: Part


GameReport = GameStarted | GamePlayed
GAME_REPORT: TypeAdapter[GameReport] = TypeAdapter(Annotated[GameReport, Field(discriminator="type")])

FRAME, REPORT = b"F", b"R"
"""First byte of the engine's messages: a frame, which may be lost, or a `GameReport`."""
