"""The audit trail in the database."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import AuditEntry, keyset
from backend.db.clock import database_now
from backend.db.ids import new_id


def add(
    session: Session,
    *,
    actor_id: str | None,
    actor_name: str | None,
    action: str,
    path: str,
    body: dict[str, Any],
    request_id: str,
) -> None:
    """Write an entry down, with the change it tells of."""
    entry = AuditEntry(
        id=new_id(),
        time=database_now(session),
        actor_id=actor_id,
        actor_name=actor_name,
        action=action,
        path=path,
        body=body,
        request_id=request_id,
    )
    session.add(entry)
    session.flush()


def page(
    session: Session,
    *,
    actor_id: str | None,
    action: str | None,
    path: str | None,
    limit: int,
    cursor: str | None,
) -> tuple[list[AuditEntry], str | None]:
    """One page of the entries that fit, the newest first, and the next page's cursor."""
    statement = select(AuditEntry)
    if actor_id is not None:
        statement = statement.where(AuditEntry.actor_id == actor_id)
    if action is not None:
        statement = statement.where(AuditEntry.action == action)
    if path is not None:
        statement = statement.where(AuditEntry.path.startswith(path, autoescape=True))
    return keyset.page(
        session,
        statement,
        by=AuditEntry.id,
        row_id=AuditEntry.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )
