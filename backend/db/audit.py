"""Table `audit_entries`: who changed what, when."""

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class AuditEntry(Base):
    """One request that changed something, committed with the change. It outlives its user."""

    __tablename__ = "audit_entries"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    time: Mapped[datetime]
    actor_id: Mapped[str | None] = mapped_column(String(26), index=True)
    actor_name: Mapped[str | None] = mapped_column(String(100))
    action: Mapped[str] = mapped_column(String(100), index=True)
    """The operation's id, such as `stop_run`."""
    path: Mapped[str] = mapped_column(String(2000))
    body: Mapped[dict[str, Any]]
    """What was asked for, without secrets."""
    request_id: Mapped[str] = mapped_column(String(64))
