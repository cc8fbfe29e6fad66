"""The inboxes: each alert is of one user. Alerts are raised by workers, once, and read on the pages."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from backend.alerts.alerts import repository
from backend.alerts.targets import service as targets
from backend.db import Alert
from backend.db.alert import MAX_ALERT_TEXT, MAX_TITLE, AlertLevel
from backend.db.base import new_id, storable
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.platform.errors import NotFound

MAX_PER_DAY = 60
"""Alerts of a rule a day, in UTC, and those of a user's scripts without a rule."""
KEPT_DAYS = 90
_REMOVED_TOGETHER = 2_000


@dataclass(frozen=True)
class NewAlert:
    """What an alert says."""

    kind: str
    level: AlertLevel
    title: str
    text: str = ""
    subject_id: str = ""
    attempt: int = 0
    occurrence: str = ""
    agent_steps: int | None = None
    metric: str | None = None


def raise_alert(
    session: Session, owner_id: str, rule_id: str | None, alert: NewAlert, target_ids: Collection[str]
) -> bool:
    """Add an alert to an inbox and to the outbox, unless its rule has it already or has its maximum of today.
    Returns whether it was added.

    Args:
        session: a writing session, which has locked the rule.
        owner_id: the user.
        rule_id: the rule; None: it has none.
        alert: the alert.
        target_ids: to which it is delivered.
    """
    key = (rule_id, alert.subject_id, alert.attempt, alert.kind, alert.occurrence)
    if rule_id is not None and repository.exists(session, key):
        return False
    now = database_now(session)
    today = datetime(now.year, now.month, now.day, tzinfo=UTC)
    n_today = repository.count_since(session, rule_id, owner_id, today)
    if n_today > MAX_PER_DAY:  # the last one is the notice
        return False
    if n_today == MAX_PER_DAY:
        whose = "This rule has" if rule_id is not None else "Your scripts have"
        alert = NewAlert(
            kind="limit",
            level="warning",
            title=f"No more alerts today: {alert.title}",
            text=f"{whose} raised {MAX_PER_DAY} alerts today (UTC), the most of a day. This and further ones "
            "are left out until midnight; edit or delete the rule if they are of no use.",
            occurrence=f"{today:%Y-%m-%d}",
        )
    row = Alert(
        id=new_id(),
        owner_id=owner_id,
        rule_id=rule_id,
        created_at=now,
        kind=alert.kind,
        level=alert.level,
        title=_cut(alert.title, MAX_TITLE),
        text=_cut(alert.text, MAX_ALERT_TEXT),
        subject_id=alert.subject_id,
        attempt=alert.attempt,
        occurrence=alert.occurrence,
        agent_steps=alert.agent_steps,
        metric=alert.metric,
    )
    repository.add(session, row, target_ids)
    _publish(session, row.id, owner_id)
    return True


def try_target(session: Session, target_id: str, owner_id: str) -> Alert:
    """Raise an alert for a user that is delivered to a target, as a trial.

    Raises:
        NotFound: there is no such target.
    """
    target = targets.get(session, target_id)
    row = Alert(
        id=new_id(),
        owner_id=owner_id,
        created_at=database_now(session),
        kind="trial",
        level="info",
        title=f"Trial of {target.name}",
        text="If you read this outside of Callboard, its alerts arrive here.",
        subject_id="",
        attempt=0,
        occurrence="",
    )
    repository.add(session, row, [target_id])
    _publish(session, row.id, owner_id)
    return row


def set_read(session: Session, owner_id: str, alert_id: str, *, read: bool) -> Alert:
    """Mark an alert of a user as read or unread.

    Raises:
        NotFound: the user has no such alert.
    """
    alert = get(session, owner_id, alert_id, for_update=True)
    alert.read_at = database_now(session) if read else None
    session.flush()
    _publish(session, alert_id, owner_id)
    return alert


def read_until(session: Session, owner_id: str, alert_id: str) -> None:
    """Mark an alert of a user and all before it as read.

    Raises:
        NotFound: the user has no such alert.
    """
    get(session, owner_id, alert_id)
    if repository.read_until(session, owner_id, alert_id, database_now(session)):
        _publish(session, alert_id, owner_id)


def get(session: Session, owner_id: str, alert_id: str, *, for_update: bool = False) -> Alert:
    """An alert of a user.

    Raises:
        NotFound: the user has no such alert.
    """
    alert = repository.get(session, alert_id, for_update=for_update)
    if alert is None or alert.owner_id != owner_id:
        raise NotFound(f"you have no alert {alert_id}")
    return alert


def remove_old(session: Session) -> None:
    """Delete some of the alerts that are older than `KEPT_DAYS`."""
    before = database_now(session) - timedelta(days=KEPT_DAYS)
    repository.remove_before(session, before, _REMOVED_TOGETHER)


def _publish(session: Session, alert_id: str, owner_id: str) -> None:
    record_change(session, "alert", alert_id, parents={"user": owner_id})


def _cut(text: str, length: int) -> str:
    text = storable(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"
