"""Start sets: states of recorded Atari games from which agents are evaluated (Nair et al. 2015, section 5.2).

A set holds the seed and the actions of each game, so that every state can be simulated again, with the hash
of the ROM and the version of the emulator. RAM and screen of each state are known by their hashes. Emulator
states are no part of it: a worker derives them by replay, so that none is ever read from a request.
"""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from backend.specs.fields import MD5, SET_NAME, SHA256, WITHOUT_CONTROLS, Strict

Players = Literal["people", "scripts"]
"""Who has played recorded games."""
N_POINTS = 100
"""Points of a set in Nair et al. 2015, section 5.2."""
MAX_POINTS = 500
MAX_GAMES = 200
SMALL_GAMES = 5
"""A set of fewer games is marked as small: its states are too much alike."""
MAX_DECISIONS = 108_000
"""Of one game: 30 minutes, with a decision at every frame."""

LEAD_FRAMES = 16
"""Frames before each point that are played again at its start, so that the four stacked frames of the first
observation are those of the game. No point is earlier in its game."""

STARTS_FILE = "starts.npz"
"""In the folder of a run that is evaluated from a start set: the emulator states of the set."""

Source = Literal["agent", "human", "human_imported", "scripted"]
"""Who played the games: a stored agent, people of this installation, people as an imported file states, or a
program in a person's place."""
OF_PEOPLE: tuple[Source, ...] = ("human", "human_imported")


class RecordedGame(Strict):
    """One game of a set, without its player's name."""

    seed: int = Field(ge=0, le=2**63 - 1)
    """Seed of the game's start."""
    environment_config: dict[str, Any]
    """Environment settings of the game."""
    actions: str = Field(max_length=400_000)
    """Index of the action of each decision up to the last point: one byte each, compressed by zlib, in
    Base64."""

    def decisions(self) -> bytes:
        """The index of each decision's action."""
        return _decoded(self.actions)

    @staticmethod
    def encoded(actions: Iterable[int]) -> str:
        """The text of actions."""
        return base64.b64encode(zlib.compress(bytes(actions), 9)).decode("ascii")

    @field_validator("actions")
    @classmethod
    def _readable(cls, actions: str) -> str:
        _decoded(actions)
        return actions


def _decoded(text: str) -> bytes:
    """Actions from their text.

    Raises:
        ValueError: the text is damaged, or too long.
    """
    inflate = zlib.decompressobj()
    try:
        actions = inflate.decompress(base64.b64decode(text, validate=True), MAX_DECISIONS + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"actions are damaged: {error}") from None
    if len(actions) > MAX_DECISIONS or not inflate.eof:
        raise ValueError(f"actions are cut off, or more than {MAX_DECISIONS:,}")
    return actions


class StartPoint(Strict):
    """A state of a game: the one before a decision."""

    game: int = Field(ge=0, lt=MAX_GAMES)
    """Number of the game, from 0."""
    decision: int = Field(ge=1, lt=MAX_DECISIONS + 1)
    """Number of decisions before the state."""
    score: float
    """Score of the game before the state. It does not count for the agent that starts there."""
    frames: int | None = Field(default=None, ge=0)
    """Frames of the game before the state, which count towards the limit of an evaluation. Null, as the two
    hashes, until a worker has replayed the game."""
    ram_sha256: str | None = Field(default=None, pattern=SHA256)
    """SHA-256 of the console's RAM."""
    screen_sha256: str | None = Field(default=None, pattern=SHA256)
    """SHA-256 of the screen, in RGB."""


class StartSetContent(Strict):
    """The games and points of a start set."""

    format: int = Field(default=1, ge=1, le=1)
    """Version of the format."""
    environment: str = Field(max_length=100, pattern=WITHOUT_CONTROLS)
    """Id of the games' environment."""
    source: Source
    """Who played: a stored `agent`, people (`human`), people as an imported file states (`human_imported`),
    or a program in a person's place (`scripted`)."""
    n_people: int = Field(default=0, ge=0, le=MAX_GAMES)
    """How many people played the games."""
    rom_md5: str | None = Field(default=None, pattern=MD5)
    """MD5 of the game's ROM; null until a worker has replayed the games."""
    ale_py: str | None = Field(default=None, max_length=50, pattern=WITHOUT_CONTROLS)
    """Version of ale-py that replayed the games; null before."""
    games: list[RecordedGame] = Field(min_length=1, max_length=MAX_GAMES)
    """The games."""
    points: list[StartPoint] = Field(min_length=1, max_length=MAX_POINTS)
    """The points, in random order: episode k of an evaluation starts from the k-th."""

    @model_validator(mode="after")
    def _points_lie_in_their_games(self) -> Self:
        lengths = [len(game.decisions()) for game in self.games]
        for number, point in enumerate(self.points):
            if point.game >= len(self.games):
                raise ValueError(f"point {number} names game {point.game}, but there are {len(self.games)}")
            if point.decision > lengths[point.game]:
                raise ValueError(
                    f"point {number} lies after decision {point.decision}, but game {point.game} has "
                    f"{lengths[point.game]}"
                )
        return self

    def checksum(self) -> str:
        """SHA-256 of the set's content."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class StartSetFile(Strict):
    """An exported start set."""

    name: str = Field(pattern=rf"^{SET_NAME}$")
    """Name of the set where it was exported."""
    version: int = Field(ge=1, le=2**31 - 1)
    """Its version there."""
    sha256: str = Field(pattern=SHA256)
    """SHA-256 of the content."""
    content: StartSetContent
    """Games and points."""
