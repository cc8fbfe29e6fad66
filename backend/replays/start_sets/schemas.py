"""Request and response bodies of start sets."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from backend.db import Job, StartSet
from backend.platform.schemas import Id, Page
from backend.runs.starts import service as starts
from backend.specs.fields import SET_NAME, ULID, Schema, Strict
from backend.specs.run_fields import MAX_ENVIRONMENT, Seed
from backend.specs.start_sets import MAX_GAMES, MAX_POINTS, N_POINTS, Players, Source, StartSetFile

SetName = Annotated[str, StringConstraints(pattern=rf"^{SET_NAME}$")]
RowId = Annotated[str, StringConstraints(pattern=ULID)]


class StartSetRequest(Strict):
    """A start set to create from recorded games: episodes of agents, or recordings of play."""

    name: SetName = Field(
        description="Name of the set: small letters, digits and hyphens. A set of this name gets its next "
        "version."
    )
    run: RowId | None = Field(
        default=None, description=f"Id of a run: its latest {MAX_GAMES} recorded episodes are the games."
    )
    kind: Literal["training", "evaluation"] | None = Field(
        default=None, description="With `run`: only episodes of training, or of evaluations."
    )
    episodes: list[RowId] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_GAMES,
        description="Ids of recorded episodes of one game, instead of `run`.",
    )
    environment: str | None = Field(
        default=None,
        max_length=MAX_ENVIRONMENT,
        description=f"Instead of `run`, id of a game: the latest {MAX_GAMES} recordings of people, or of "
        "scripts, are the games, without damaged ones and those of open play sessions.",
    )
    players: Players | None = Field(
        default=None,
        description="With `environment`: who has played the games; default: people. Games of people and of "
        "scripts are never in one set.",
    )
    recordings: list[RowId] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_GAMES,
        description="Instead of `run`, ids of recordings of one game: all of people, or all of scripts.",
    )
    points: int = Field(
        default=N_POINTS,
        ge=1,
        le=MAX_POINTS,
        description="How many states are sampled at random from the games (Nair et al. 2015, 5.2: 100).",
    )
    seed: Seed = Field(default=0, description="Seed of the sampling.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        sources = (self.run, self.episodes, self.environment, self.recordings)
        if sum(source is not None for source in sources) != 1:
            raise ValueError("give one of run, episodes, environment and recordings")
        if self.kind is not None and self.run is None:
            raise ValueError("kind: only with run")
        if self.players is not None and self.environment is None:
            raise ValueError("players: only with environment")
        return self


class StartSetSource(Schema):
    """Recordings of an Atari game that can be the games of a set."""

    environment: str = Field(examples=["ALE/Breakout-v5"])
    """Id of the game."""
    players: Players
    """Who has played them."""
    n_recordings: int = Field(examples=[12])
    """Number of recordings, without those of open play sessions and those with no state to start from."""


class StartSetSources(Schema):
    """The Atari games that people or scripts have played here."""

    items: list[StartSetSource]
    """By game and players."""


class StartSetImport(Strict):
    """A start set to import."""

    name: SetName | None = Field(
        default=None, description="Name of the set here; default: that of the file. It gets its next version."
    )
    file: StartSetFile
    """An exported set."""


class StartSetOut(Schema):
    """One version of a start set."""

    id: Id
    """Id of the set."""
    name: str = Field(examples=["pong"])
    """Name of the set."""
    version: int = Field(examples=[1])
    """Number of the version; a deleted one's is never given again."""
    created_at: datetime
    """When it was created or imported."""
    created_by: str | None
    """Id of the user who created it."""
    environment: str = Field(examples=["ALE/Pong-v5"])
    """Id of the games' environment."""
    source: Source
    """Who played the games: a stored `agent`, people of this installation (`human`), people as an imported
    file states (`human_imported`), or a program in a person's place (`scripted`)."""
    origin: str
    """Where the games come from."""
    n_points: int = Field(examples=[100])
    """Number of starts."""
    n_games: int
    """Number of games with a start."""
    n_people: int
    """How many people played them, for an imported set as its file states; 0 for games of agents and
    scripts."""
    is_small: bool
    """Whether it has so few games that its starts are much alike."""
    caption: str = Field(examples=["100 starts from 6 games by 2 people, 123,456 frames"])
    """What it holds, for captions."""
    n_frames: int | None
    """Frames of the games up to their last starts; null until they are verified."""
    mode: int | None
    """Mode of the games; null: the game's default."""
    difficulty: int | None
    """Difficulty of the games; null: the game's default."""
    rom_md5: str | None
    """MD5 of the game's ROM."""
    ale_py: str | None = Field(examples=["0.12.1"])
    """Version of ale-py that verified the set; null before."""
    sha256: str
    """SHA-256 of its content."""
    state: Literal["verifying", "ready", "failed"]
    """`verifying` until a worker has replayed its games; `ready` once their states were as recorded."""
    error: str | None
    """Why it could not be verified; null if it could."""
    protocols: list[str] = Field(examples=[["agent_starts:pong@1", "agent_starts_greedy:pong@1"]])
    """The evaluation protocols that start from it."""

    @classmethod
    def of(cls, row: StartSet, job: Job | None) -> "StartSetOut":
        """From the rows of the set and of the job that verifies it."""
        values = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        if (error := starts.verification_error(row, job)) is not None:
            values |= {"state": "failed", "error": error}
        values |= {"protocols": starts.protocols_of(row), "is_small": starts.is_small(row)}
        return cls.model_validate(values | {"caption": starts.caption(row)})


class StartSetPage(Page):
    """A page of start sets."""

    items: list[StartSetOut]
    """Sets of this page."""
