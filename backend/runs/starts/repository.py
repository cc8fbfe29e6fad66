"""Start sets in the database."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session, undefer

from backend.db import Run, StartSet, keyset
from backend.db.json_values import json_text
from backend.specs.states import ENDED


def add(session: Session, row: StartSet) -> None:
    """Store a new set."""
    session.add(row)
    session.flush()


def get(
    session: Session, set_id: str, *, for_update: bool = False, with_content: bool = False
) -> StartSet | None:
    """The set, or None; a deleted one included.

    Args:
        session: any session.
        set_id: id of the set.
        for_update: lock the row.
        with_content: load its document and states, too.
    """
    statement = select(StartSet).where(StartSet.id == set_id)
    if with_content:
        statement = statement.options(undefer(StartSet.document), undefer(StartSet.states))
    return session.scalars(statement.with_for_update() if for_update else statement).one_or_none()


def version(session: Session, name: str, number: int | None) -> StartSet | None:
    """A version of the sets of a name; without a number the latest that can be used, else the latest."""
    statement = select(StartSet).where(StartSet.name == name)
    if number is not None:
        return session.scalars(statement.where(StartSet.version == number)).one_or_none()
    latest = statement.order_by((StartSet.state != "ready"), StartSet.version.desc()).limit(1)
    return session.scalars(latest).one_or_none()


def next_version(session: Session, name: str) -> int:
    """One more than the versions of this name so far, deleted ones included."""
    return (session.scalar(select(func.max(StartSet.version)).where(StartSet.name == name)) or 0) + 1


def open_run(session: Session, environment: str, protocols: Sequence[str]) -> str | None:
    """The name of a run in an environment that has not ended and is evaluated under one of these protocols;
    None if there is none."""
    protocol = json_text(Run.spec, ("config", "evaluation_protocol"))
    statement = (
        select(Run.name)
        .where(Run.environment == environment, Run.state.not_in([*ENDED]), protocol.in_(protocols))
        .limit(1)
    )
    return session.scalar(statement)


def ready(session: Session, environment: str) -> Sequence[StartSet]:
    """The sets that agents of this environment can start from, by name, latest version first."""
    statement = select(StartSet).where(StartSet.environment == environment, StartSet.state == "ready")
    return session.scalars(statement.order_by(StartSet.name, StartSet.version.desc())).all()


def page(
    session: Session, *, environment: str | None, limit: int, cursor: str | None
) -> tuple[list[StartSet], str | None]:
    """One page of the sets that are not deleted, latest first, and the cursor of the next page."""
    statement = select(StartSet).where(StartSet.state != "deleted")
    if environment is not None:
        statement = statement.where(StartSet.environment == environment)
    return keyset.page(
        session,
        statement,
        by=StartSet.created_at,
        row_id=StartSet.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )
