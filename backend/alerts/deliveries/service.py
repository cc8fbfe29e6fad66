"""The outbox: alerts on their way to targets, at least once each.

A worker leases a delivery, sends it outside of any transaction, and records the result. If the worker is
killed in between, the lease runs out and another try follows: a receiver may get an alert twice, with the
same id.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session

from backend.alerts.deliveries import repository
from backend.alerts.targets import repository as targets
from backend.alerts.targets.addresses import BadAddress, opened
from backend.db.base import storable
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.platform.settings import Settings

LEASE_S = 120.0
"""Longer than a try takes."""
DELAYS_S = (30.0, 120.0, 300.0, 900.0, 2_700.0, 6_300.0, 11_250.0)
"""After each try that failed: eight tries over 6 hours."""
MAX_TRIES = len(DELAYS_S) + 1
_BREAK = "\u200b"


@dataclass(frozen=True)
class Leased:
    """A delivery that this worker is to try."""

    alert_id: str
    target_id: str
    tries: int
    url: str
    """The target's address, with its secrets."""
    kind: str
    level: str
    title: str
    text: str
    run_id: str | None


def is_due(session: Session) -> bool:
    """Whether there is something to deliver now. Reads only."""
    return repository.next_due(session, database_now(session)) is not None


def lease(session: Session) -> Leased | None:
    """Lease the delivery that is due for longest; None if there is none."""
    now = database_now(session)
    while (row := repository.next_due(session, now, for_update=True)) is not None:
        url = targets.secret_url(session, row.target_id)
        if url is not None and row.tries < MAX_TRIES:
            break
        row.state, row.error = "failed", row.error or "its worker was killed during each try"
        session.flush()
    if row is None or url is None:
        return None
    row.tries += 1
    row.due_at = now + timedelta(seconds=LEASE_S)
    alert = repository.alert(session, row.alert_id)
    return Leased(
        alert_id=row.alert_id,
        target_id=row.target_id,
        tries=row.tries,
        url=url,
        kind=alert.kind,
        level=alert.level,
        title=alert.title,
        text=alert.text,
        run_id=alert.subject_id if repository.has_run(session, alert.subject_id) else None,
    )


def send(leased: Leased, settings: Settings) -> str | None:
    """Send an alert to its target; return why that failed, or None."""
    if not leased.url:
        return "its address is not in backups: delete the target, and add it again"
    try:
        kind, sender = opened(leased.url)
    except BadAddress:
        return "its address is of no allowed service"
    page = None
    if settings.public_url is not None:
        path = "/alerts" if leased.run_id is None else f"/runs/{leased.run_id}"
        page = f"{settings.public_url}{settings.prefix}{path}"
    title, text = leased.title, leased.text or leased.title
    if kind == "json":
        extras = {"id": leased.alert_id, "kind": leased.kind, "run_id": leased.run_id, "url": page}
        sender.payload_extras = extras  # type: ignore[attr-defined] # of this service alone
    else:
        # What a script writes mentions nobody.
        title, text = (part.replace("@", f"@{_BREAK}").replace("<", f"<{_BREAK}") for part in (title, text))
        text = "\n\n".join(filter(None, (text, page, f"Alert {leased.alert_id}")))
    level = {"info": "info", "warning": "warning", "error": "failure"}[leased.level]
    try:
        accepted = sender.notify(body=text, title=title, notify_type=level, body_format="text")
    except Exception as error:  # of a service's own
        return f"{type(error).__name__} in Apprise"
    return None if accepted else "the target did not accept it, or did not answer"


def settle(session: Session, leased: Leased, error: str | None) -> None:
    """Record the result of a try, unless another one has begun meanwhile."""
    row = repository.get(session, leased.alert_id, leased.target_id)
    if row is None or row.tries != leased.tries or row.state != "pending":
        return
    row.error = None if error is None else storable(error)
    if error is None:
        row.state = "delivered"
    elif row.tries >= MAX_TRIES:
        row.state = "failed"
    else:
        now = database_now(session)
        row.due_at = now + timedelta(seconds=DELAYS_S[row.tries - 1])
        session.flush()
        # Whatever waits for the same target would fail too, and delay that for others.
        repository.postpone(session, leased.target_id, now + timedelta(seconds=DELAYS_S[0]))
    session.flush()
    owner_id = repository.alert(session, leased.alert_id).owner_id
    record_change(session, "alert", leased.alert_id, parents={"user": owner_id}, changed=["deliveries"])
