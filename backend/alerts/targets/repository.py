"""Targets of alerts in the database."""

from collections.abc import Collection

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import AlertTarget, keyset


def page(session: Session, *, limit: int, cursor: str | None) -> tuple[list[AlertTarget], str | None]:
    """A page of the targets, by name."""
    return keyset.page(
        session,
        select(AlertTarget),
        by=AlertTarget.name,
        row_id=AlertTarget.id,
        descending=False,
        limit=limit,
        cursor=cursor,
    )


def get(session: Session, target_id: str) -> AlertTarget | None:
    """The target, or None."""
    return session.get(AlertTarget, target_id)


def secret_url(session: Session, target_id: str) -> str | None:
    """The address of a target with its secrets; None if it has been deleted."""
    return session.scalars(select(AlertTarget.secret_url).where(AlertTarget.id == target_id)).one_or_none()


def existing(session: Session, target_ids: Collection[str]) -> set[str]:
    """Those of these ids that are of targets."""
    return set(session.scalars(select(AlertTarget.id).where(AlertTarget.id.in_(target_ids))))


def has_name(session: Session, name: str) -> bool:
    """Whether a target has this name."""
    return session.scalars(select(AlertTarget.id).where(AlertTarget.name == name)).first() is not None


def count(session: Session) -> int:
    """Number of targets."""
    return session.scalars(select(func.count()).select_from(AlertTarget)).one()


def add(session: Session, target: AlertTarget) -> None:
    """Store a new target."""
    session.add(target)
    session.flush()


def remove(session: Session, target: AlertTarget) -> None:
    """Delete a target, with what waits to be delivered to it."""
    session.delete(target)
    session.flush()
