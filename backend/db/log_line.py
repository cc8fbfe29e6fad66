"""Tables `log_lines` and `transitions`: a run's log and the changes of its state."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class LogLine(Base):
    """One line of a run's log."""

    __tablename__ = "log_lines"
    __table_args__ = (Index(None, "run_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    time: Mapped[datetime]
    level: Mapped[str] = mapped_column(String(10))
    message: Mapped[str] = mapped_column(Text)
    agent_steps: Mapped[int | None] = mapped_column(BigInteger)


class Transition(Base):
    """One change of a run's state."""

    __tablename__ = "transitions"
    __table_args__ = (Index(None, "run_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    time: Mapped[datetime]
    before: Mapped[str | None] = mapped_column(String(20))
    after: Mapped[str] = mapped_column(String(20))
    attempt: Mapped[int]
    reason: Mapped[str] = mapped_column(Text)
