"""Tables `play_sessions`, `recordings` and `recording_parts`: sessions of play, and the games played."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.db.checked_json import CheckedJson
from backend.specs.recordings import Actor, PlayedAgent, PlayedFrom


class PlaySession(Base):
    """One person, or script, at one environment on a worker, which claims the session under a lease."""

    __tablename__ = "play_sessions"
    __table_args__ = (Index(None, "state", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    environment: Mapped[str] = mapped_column(String(200))
    environment_config: Mapped[dict[str, Any]]
    scripted: Mapped[bool]
    """Whether a script has opened it or has sent actions."""
    actors: Mapped[list[dict[str, Any]]] = mapped_column(CheckedJson(list[Actor]), default=list)
    """Who can act in its games, as `Actor`: the player first."""
    agent: Mapped[dict[str, Any] | None] = mapped_column(CheckedJson(PlayedAgent | None))
    """The checkpoint of its agent, which is the last of the actors."""
    source: Mapped[dict[str, Any] | None] = mapped_column(CheckedJson(PlayedFrom | None))
    """The episode from which its games go on."""
    moment: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Compressed JSON of `backend.replays.play.sources.Beginning`, until the session has ended."""
    state: Mapped[str] = mapped_column(String(20))
    """`queued`, `running` or `ended`."""
    end_reason: Mapped[str | None] = mapped_column(Text)
    host: Mapped[str | None] = mapped_column(String(200))
    lease_expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class Recording(Base):
    """One game of a session: seed and actions, from which it is simulated again.

    Its columns describe the game up to its latest part, so that a game whose worker died is complete up to
    there.
    """

    __tablename__ = "recordings"
    __table_args__ = (Index(None, "environment", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    session_id: Mapped[str] = mapped_column(String(26), index=True)
    """Its session, whose row may be gone."""
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    environment: Mapped[str] = mapped_column(String(200))
    environment_config: Mapped[dict[str, Any]]
    protocol: Mapped[str] = mapped_column(String(50))
    """`human_play`, `practice`, `scripted` or `joint`."""
    actors: Mapped[list[dict[str, Any]]] = mapped_column(CheckedJson(list[Actor]), default=list)
    """Who has acted, as `Actor`; empty: the player alone."""
    source: Mapped[dict[str, Any] | None] = mapped_column(CheckedJson(PlayedFrom | None))
    """The episode from which it goes on."""
    seed: Mapped[int] = mapped_column(BigInteger)
    frames_per_step: Mapped[int]
    action_names: Mapped[list[str]]
    rom_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of an Atari game's ROM."""
    versions: Mapped[dict[str, str]]
    """Versions of the packages that simulated it."""
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    """None while it is played."""
    finished: Mapped[bool] = mapped_column(default=False)
    """Whether it was played to the end of the game."""
    episode_return: Mapped[float] = mapped_column(default=0.0)
    length_steps: Mapped[int] = mapped_column(default=0)
    length_frames: Mapped[int] = mapped_column(default=0)
    video_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the rendered video; None before the first request."""
    video_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Size of the video and of the emulator states."""
    states_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the emulator states of a long game; None if there are none."""


class RecordingPart(Base):
    """Consecutive decisions of a recording, written while it is played."""

    __tablename__ = "recording_parts"

    recording_id: Mapped[str] = mapped_column(
        ForeignKey("recordings.id", ondelete="CASCADE"), primary_key=True
    )
    first_step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Number of its first decision, from 0."""
    content: Mapped[bytes] = mapped_column(LargeBinary)
    """Compressed JSON of `backend.replays.recordings.service.Part`."""
    sha256: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the content."""
