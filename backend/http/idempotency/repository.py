"""Responses by idempotency key."""

from datetime import timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from backend.db import IdempotencyKey
from backend.db.clock import database_now

KEPT = timedelta(days=1)
"""After this time, a repeated request counts as a new one."""


def get(session: Session, actor_id: str, key: str) -> IdempotencyKey | None:
    """The stored response, or None, also of one that has expired."""
    row = session.get(IdempotencyKey, (actor_id, key))
    return row if row is not None and row.created_at >= database_now(session) - KEPT else None


def add(session: Session, actor_id: str, key: str, fingerprint: str, status: int, body: str) -> None:
    """Store a response, and delete expired ones.

    Raises:
        IntegrityError: a concurrent request with this key was faster; roll back.
    """
    now = database_now(session)
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.created_at < now - KEPT))
    session.add(
        IdempotencyKey(
            actor_id=actor_id, key=key, fingerprint=fingerprint, status=status, body=body, created_at=now
        )
    )
    session.flush()
