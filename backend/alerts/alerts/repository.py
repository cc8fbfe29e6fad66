"""Alerts and their deliveries in the database."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from backend.db import Alert, AlertTarget, Delivery, Run, keyset

AlertKey = tuple[str | None, str, int, str, str]
"""Rule, subject, attempt, kind, occurrence."""
_KEY = (Alert.rule_id, Alert.subject_id, Alert.attempt, Alert.kind, Alert.occurrence)


def page(
    session: Session, owner_id: str, *, unread: bool, subject_id: str | None, limit: int, cursor: str | None
) -> tuple[list[Alert], str | None]:
    """A page of a user's alerts, latest first."""
    alerts = select(Alert).where(Alert.owner_id == owner_id)
    if unread:
        alerts = alerts.where(Alert.read_at.is_(None))
    if subject_id is not None:
        alerts = alerts.where(Alert.subject_id == subject_id)
    return keyset.page(
        session, alerts, by=Alert.id, row_id=Alert.id, descending=True, limit=limit, cursor=cursor
    )


def get(session: Session, alert_id: str, *, for_update: bool = False) -> Alert | None:
    """The alert, or None."""
    return session.get(Alert, alert_id, with_for_update=for_update or None, populate_existing=for_update)


def count_unread(session: Session, owner_id: str) -> int:
    """Number of a user's unread alerts."""
    unread = select(func.count()).select_from(Alert)
    return session.scalars(unread.where(Alert.owner_id == owner_id, Alert.read_at.is_(None))).one()


def read_until(session: Session, owner_id: str, alert_id: str, now: datetime) -> int:
    """Mark a user's alerts up to this one as read; return how many were unread."""
    unread = (Alert.owner_id == owner_id) & Alert.read_at.is_(None) & (Alert.id <= alert_id)
    result = session.execute(update(Alert).where(unread).values(read_at=now))
    return int(getattr(result, "rowcount", 0))


def exists(session: Session, key: AlertKey) -> bool:
    """Whether there is an alert with this key."""
    rule_id, subject_id, attempt, kind, occurrence = key
    of_key = select(Alert.id).where(
        Alert.rule_id == rule_id,
        Alert.subject_id == subject_id,
        Alert.attempt == attempt,
        Alert.kind == kind,
        Alert.occurrence == occurrence,
    )
    return session.scalars(of_key).first() is not None


def keys_about(session: Session, subject_ids: Collection[str]) -> set[AlertKey]:
    """The keys of all alerts of rules about these runs, hosts, sweeps or studies."""
    of_rules = select(*_KEY).where(Alert.subject_id.in_(subject_ids), Alert.rule_id.is_not(None))
    return {(row[0], row[1], row[2], row[3], row[4]) for row in session.execute(of_rules)}


def count_since(session: Session, rule_id: str | None, owner_id: str, since: datetime) -> int:
    """Number of alerts of a rule, or of a user's without one, since then."""
    alerts = select(func.count()).select_from(Alert).where(Alert.owner_id == owner_id)
    of_rule = Alert.rule_id.is_(None) if rule_id is None else Alert.rule_id == rule_id
    return session.scalars(alerts.where(of_rule, Alert.created_at >= since)).one()


def add(session: Session, alert: Alert, target_ids: Collection[str]) -> None:
    """Store a new alert, to be delivered to these targets."""
    session.add(alert)
    session.flush()
    session.add_all(
        Delivery(alert_id=alert.id, target_id=target_id, due_at=alert.created_at) for target_id in target_ids
    )
    session.flush()


def deliveries(session: Session, alert_ids: Collection[str]) -> dict[str, list[tuple[Delivery, str]]]:
    """The deliveries of alerts with the names of their targets, by alert."""
    rows = session.execute(
        select(Delivery, AlertTarget.name)
        .join(AlertTarget, AlertTarget.id == Delivery.target_id)
        .where(Delivery.alert_id.in_(alert_ids))
        .order_by(AlertTarget.name)
    )
    by_alert: dict[str, list[tuple[Delivery, str]]] = defaultdict(list)
    for delivery, name in rows:
        by_alert[delivery.alert_id].append((delivery, name))
    return by_alert


def run_names(session: Session, run_ids: Collection[str]) -> dict[str, str]:
    """Names of those of these ids that are of runs."""
    return dict(session.execute(select(Run.id, Run.name).where(Run.id.in_(run_ids))).all())


def remove_before(session: Session, before: datetime, limit: int) -> None:
    """Delete the first alerts, at most `limit`, that are older."""
    old = select(Alert.id).where(Alert.created_at < before).order_by(Alert.id).limit(limit)
    session.execute(delete(Alert).where(Alert.id.in_(session.scalars(old).all())))
