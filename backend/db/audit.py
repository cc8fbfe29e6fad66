"""Table `audit_entries`: who changed what, and when; logins, and attempts that failed."""

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class AuditEntry(Base):
    """One request that changed something, committed with the change, or a login that failed. It is kept when
    its user is deleted."""

    __tablename__ = "audit_entries"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    time: Mapped[datetime] = mapped_column(index=True)
    actor_id: Mapped[str | None] = mapped_column(String(26), index=True)
    actor_name: Mapped[str | None] = mapped_column(String(100))
    """Name of the user; for a failed login the name that was given, without an `actor_id`."""
    address: Mapped[str | None] = mapped_column(String(64))
    """Address of the client; None before these were recorded."""
    action: Mapped[str] = mapped_column(String(100), index=True)
    """The operation's id, such as `stop_run`."""
    path: Mapped[str] = mapped_column(String(2000))
    body: Mapped[dict[str, Any]]
    """The request body, without secrets."""
    request_id: Mapped[str] = mapped_column(String(64))
