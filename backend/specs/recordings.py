"""Recordings of played games: what the engine sends to its worker, and the worker stores."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from backend.specs.fields import Frozen

Count = Annotated[int, Field(ge=0)]


class GameStart(Frozen):
    """What a game begins with."""

    seed: int
    frames_per_step: int
    action_names: list[str]
    rom_sha256: str | None
    versions: dict[str, str]


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
    finished: bool = False
    """Whether the game is over."""
    left: bool = False
    """Whether its player has ended it before."""


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
