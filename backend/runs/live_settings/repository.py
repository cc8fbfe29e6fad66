"""Changes to the settings of runs in the database."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import LiveSettings

REQUESTED, APPLIED, REFUSED = "asked", "applied", "refused"


def next_version(session: Session, run_id: str) -> int:
    """Number of the next change to a locked run's settings."""
    version = select(func.coalesce(func.max(LiveSettings.version), 0) + 1)
    return session.scalars(version.where(LiveSettings.run_id == run_id)).one()


def add(session: Session, row: LiveSettings) -> None:
    """Store a requested change."""
    session.add(row)
    session.flush()


def get(session: Session, run_id: str, version: int) -> LiveSettings | None:
    """A change, or None."""
    return session.get(LiveSettings, (run_id, version))


def pending(session: Session, run_id: str, *, before: int | None = None) -> Sequence[LiveSettings]:
    """The changes that an engine has not answered yet, oldest first."""
    statement = select(LiveSettings).where(LiveSettings.run_id == run_id, LiveSettings.state == REQUESTED)
    if before is not None:
        statement = statement.where(LiveSettings.version < before)
    return session.scalars(statement.order_by(LiveSettings.version)).all()


def all_versions(session: Session, run_id: str) -> Sequence[LiveSettings]:
    """Every requested change, latest first."""
    statement = select(LiveSettings).where(LiveSettings.run_id == run_id)
    return session.scalars(statement.order_by(LiveSettings.version.desc())).all()
