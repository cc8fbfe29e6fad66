"""Table `idempotency_keys`: stored responses for repeated requests."""

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class IdempotencyKey(Base):
    """The response to one POST with an `Idempotency-Key`, committed with its changes."""

    __tablename__ = "idempotency_keys"

    actor_id: Mapped[str] = mapped_column(String(26), primary_key=True)
    """Id of the session or token that sent it."""
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    """Hash of the request; the same key with another request is an error."""
    status: Mapped[int]
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(index=True)
