"""Table `start_sets`: states of recorded games from which agents are evaluated."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.specs.run_fields import MAX_ENVIRONMENT


class StartSet(Base):
    """One version of a start set. A deleted one keeps its row, so that its number never names another."""

    __tablename__ = "start_sets"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    name: Mapped[str] = mapped_column(String(24))
    version: Mapped[int]
    environment: Mapped[str] = mapped_column(String(MAX_ENVIRONMENT))
    source: Mapped[str] = mapped_column(String(20))
    """`agent`, `human` or `scripted`."""
    origin: Mapped[str] = mapped_column(String(200))
    """Where its games come from, in words."""
    n_points: Mapped[int]
    n_games: Mapped[int]
    n_people: Mapped[int]
    n_frames: Mapped[int | None] = mapped_column(BigInteger)
    """Frames of the games up to their last points; None until they are verified."""
    rom_md5: Mapped[str | None] = mapped_column(String(32))
    ale_py: Mapped[str | None] = mapped_column(String(50))
    mode: Mapped[int | None]
    """Mode and difficulty of the games; None: the game's default."""
    difficulty: Mapped[int | None]
    state: Mapped[str] = mapped_column(String(20))
    """`verifying`, `ready`, `failed` or `deleted`."""
    error: Mapped[str | None] = mapped_column(Text)
    """Why it could not be verified."""
    document: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Seeds, actions and points as JSON, compressed by zlib; None once deleted."""
    sha256: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the content."""
    states: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Emulator states of the points, an .npz; None until they are verified."""
