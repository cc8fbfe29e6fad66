"""Table `attempts`: one claim of a run by a host, and how far its log is recorded."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Attempt(Base):
    """Attempt `number` of a run, from 1."""

    __tablename__ = "attempts"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    host: Mapped[str] = mapped_column(String(200))
    claimed_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    outcome: Mapped[str | None] = mapped_column(Text)
    resumed_from_agent_steps: Mapped[int] = mapped_column(BigInteger, default=0)
    """Where this attempt's points begin; earlier attempts' points after it are superseded."""
    log_offset_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    """Everything before this offset of the attempt's event log is in the database."""
