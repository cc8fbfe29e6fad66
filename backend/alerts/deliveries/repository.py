"""The outbox of alerts in the database."""

from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from backend.db import Alert, Delivery, Run


def next_due(session: Session, now: datetime, *, for_update: bool = False) -> Delivery | None:
    """The delivery that is due for longest; locked if `for_update`, without those that are already."""
    pending = select(Delivery).where(Delivery.state == "pending", Delivery.due_at <= now)
    first = pending.order_by(Delivery.due_at, Delivery.alert_id).limit(1)
    return session.scalars(first.with_for_update(skip_locked=True) if for_update else first).first()


def get(session: Session, alert_id: str, target_id: str) -> Delivery | None:
    """The delivery, locked, or None."""
    return session.get(Delivery, (alert_id, target_id), with_for_update=True, populate_existing=True)


def alert(session: Session, alert_id: str) -> Alert:
    """The alert of a delivery."""
    return session.get_one(Alert, alert_id)


def has_run(session: Session, run_id: str) -> bool:
    """Whether there is such a run."""
    return session.scalars(select(Run.id).where(Run.id == run_id)).first() is not None


def postpone(session: Session, target_id: str, until: datetime) -> None:
    """Try nothing else before `until` at a target that has just failed."""
    waiting = (Delivery.target_id == target_id) & (Delivery.state == "pending") & (Delivery.due_at < until)
    session.execute(update(Delivery).where(waiting).values(due_at=until))


def count(session: Session, state: str) -> int:
    """Number of deliveries in this state."""
    return session.scalars(select(func.count()).select_from(Delivery).where(Delivery.state == state)).one()
