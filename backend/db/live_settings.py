"""Table `live_settings`: changes to a run's settings while it trains."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class LiveSettings(Base):
    """Version `version` of what a run should train by, from 1; each holds only what it changes."""

    __tablename__ = "live_settings"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    requested_at: Mapped[datetime]
    requested_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    changes: Mapped[dict[str, Any]]
    """Setting of the algorithm -> value."""
    state: Mapped[str] = mapped_column(String(20))
    """`asked`, then by the engine's word `applied` or `refused`."""
    agent_steps: Mapped[int | None] = mapped_column(BigInteger)
    """Where they came into force."""
    frames: Mapped[int | None] = mapped_column(BigInteger)
    wall_time_s: Mapped[float | None]
    refused: Mapped[str | None] = mapped_column(Text)
    """Why nothing was changed."""
