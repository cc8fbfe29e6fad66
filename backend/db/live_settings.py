"""Table `live_settings`: changes to a run's settings during training."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class LiveSettings(Base):
    """Change number `version`, from 1, of a run's settings; it holds only what it changes."""

    __tablename__ = "live_settings"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    requested_at: Mapped[datetime]
    requested_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    changes: Mapped[dict[str, Any]]
    """Setting of the algorithm -> value."""
    state: Mapped[str] = mapped_column(String(20))
    """`asked`, then `applied` or `refused` by the engine."""
    agent_steps: Mapped[int | None] = mapped_column(BigInteger)
    """Agent steps at which the change took effect."""
    frames: Mapped[int | None] = mapped_column(BigInteger)
    wall_time_s: Mapped[float | None]
    refused: Mapped[str | None] = mapped_column(Text)
    """Why the change was rejected."""
