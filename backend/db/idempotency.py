"""Table `idempotency_keys`: answers already given, for clients that ask again."""

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class IdempotencyKey(Base):
    """The answer to one POST with an `Idempotency-Key`, committed with what it changed."""

    __tablename__ = "idempotency_keys"

    actor_id: Mapped[str] = mapped_column(String(26), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    """Hash of the request: the same key for another request is a mistake."""
    status: Mapped[int]
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(index=True)
