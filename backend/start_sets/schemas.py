"""Request and response bodies of start sets."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from backend.db import Job, StartSet
from backend.schemas import Id, Page
from backend.specs.fields import ULID, Schema, Strict
from backend.specs.protocols import GREEDY, SET_NAME
from backend.specs.run_fields import Seed
from backend.specs.start_sets import MAX_GAMES, MAX_POINTS, N_POINTS, Source, StartSetFile

SetName = Annotated[str, StringConstraints(pattern=rf"^{SET_NAME}$")]
RowId = Annotated[str, StringConstraints(pattern=ULID)]


class StartSetRequest(Strict):
    """A start set to create from recorded episodes: those of a run, or the named ones."""

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
    points: int = Field(
        default=N_POINTS,
        ge=1,
        le=MAX_POINTS,
        description="How many states are sampled at random from the games (Nair et al. 2015, 5.1: 100).",
    )
    seed: Seed = Field(default=0, description="Seed of the sampling.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.run is None) == (self.episodes is None):
            raise ValueError("give either run or episodes")
        if self.kind is not None and self.run is None:
            raise ValueError("kind: only with run")
        return self


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
    """Who played the games: a stored `agent`, people (`human`), or a program in a person's place
    (`scripted`)."""
    origin: str
    """Where the games come from."""
    n_points: int = Field(examples=[100])
    """Number of starts."""
    n_games: int
    """Number of games with a start."""
    n_people: int
    """How many people played them."""
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
        if row.state == "verifying" and job is not None and job.state == "failed":
            lines = (job.error or "").strip().splitlines() or ["unknown error"]
            values |= {"state": "failed", "error": lines[-1]}
        base = "human_starts" if row.source == "human" else "agent_starts"
        protocols = [f"{base}{suffix}:{row.name}@{row.version}" for suffix in ("", GREEDY)]
        return cls.model_validate(values | {"protocols": protocols})


class StartSetPage(Page):
    """A page of start sets."""

    items: list[StartSetOut]
    """Sets of this page."""
