"""The audit trail in the database."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from backend.db import AuditEntry, folding, keyset
from backend.db.base import new_id
from backend.db.clock import database_now

T = TypeVar("T")


@dataclass(frozen=True)
class Filter:
    """Which entries are wanted; None: any."""

    actor_id: str | None = None
    user: str | None = None
    """Part of the user's name, in any case."""
    action: str | None = None
    path: str | None = None
    """Start of the request's path."""
    address: str | None = None
    """Start of the client's address."""
    since: datetime | None = None
    until: datetime | None = None


def add(
    session: Session,
    *,
    actor_id: str | None,
    actor_name: str | None,
    address: str | None,
    action: str,
    path: str,
    body: dict[str, Any],
    request_id: str,
) -> None:
    """Add an entry, in the transaction of the change."""
    entry = AuditEntry(
        id=new_id(),
        time=database_now(session),
        actor_id=actor_id,
        actor_name=actor_name,
        address=address,
        action=action,
        path=path,
        body=body,
        request_id=request_id,
    )
    session.add(entry)
    session.flush()


def page(
    session: Session, wanted: Filter, *, limit: int, cursor: str | None
) -> tuple[list[AuditEntry], str | None]:
    """One page of the matching entries, latest first, and the cursor of the next page."""
    return keyset.page(
        session,
        _matching(select(AuditEntry), wanted),
        by=AuditEntry.id,
        row_id=AuditEntry.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def exceeds(session: Session, wanted: Filter, maximum: int) -> bool:
    """Whether more entries match than `maximum`."""
    beyond = _matching(select(AuditEntry.id), wanted).offset(maximum).limit(1)
    return session.scalars(beyond).first() is not None


def actions(session: Session) -> list[str]:
    """The actions of all entries, sorted."""
    return list(session.scalars(select(AuditEntry.action).distinct().order_by(AuditEntry.action)))


def _matching(statement: Select[T], wanted: Filter) -> Select[T]:
    if wanted.actor_id is not None:
        statement = statement.where(AuditEntry.actor_id == wanted.actor_id)
    if wanted.user is not None:
        statement = statement.where(folding.contains(AuditEntry.actor_name, wanted.user))
    if wanted.action is not None:
        statement = statement.where(AuditEntry.action == wanted.action)
    if wanted.path is not None:
        statement = statement.where(AuditEntry.path.startswith(wanted.path, autoescape=True))
    if wanted.address is not None:
        statement = statement.where(AuditEntry.address.startswith(wanted.address, autoescape=True))
    if wanted.since is not None:
        statement = statement.where(AuditEntry.time >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(AuditEntry.time < wanted.until)
    return statement
