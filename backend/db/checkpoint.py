"""Table `checkpoints`: complete files that a run can resume from."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Checkpoint(Base):
    """One checkpoint, committed only when its file is complete in the artifact store."""

    __tablename__ = "checkpoints"
    __table_args__ = (Index(None, "run_id", "agent_steps"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    recorded_at: Mapped[datetime]
    agent_steps: Mapped[int] = mapped_column(BigInteger)
    frames: Mapped[int] = mapped_column(BigInteger)
    updates: Mapped[int] = mapped_column(BigInteger)
    episodes: Mapped[int] = mapped_column(BigInteger)
    wall_time_s: Mapped[float]
    file: Mapped[str] = mapped_column(String(200))
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    score: Mapped[float | None]
    """The run's score at the time of the checkpoint; below, its best return."""
    best_return: Mapped[float | None]
    removed: Mapped[bool] = mapped_column(default=False)
    """Whether the file has been removed; the row stays."""
    superseded: Mapped[bool] = mapped_column(default=False)
    """Whether a later attempt resumed from an earlier checkpoint."""
