"""The inbox: alerts of your rules, and of your scripts."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query
from sqlalchemy.orm import Session

from backend.alerts.alerts import repository, service
from backend.alerts.alerts.schemas import AlertChange, AlertOut, AlertPage
from backend.db import Alert
from backend.http.access import Admin, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter
from backend.specs.fields import ULID

router = ResourceRouter(prefix="", tags=["alerts"], route_class=IdempotentRoute)

AlertId = Annotated[str, Path(pattern=ULID, description="Id of the alert.")]


@router.get("/alerts")
def list_alerts(
    principal: Viewer,
    session: ReadSession,
    unread: Annotated[bool, Query(description="Only unread alerts.")] = False,
    run: Annotated[str | None, Query(pattern=ULID, description="Only alerts about this run.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> AlertPage:
    """Your alerts, latest first. They are kept for 90 days."""
    rows, next_cursor = repository.page(
        session, principal.id, unread=unread, subject_id=run, limit=limit, cursor=cursor
    )
    n_unread = repository.count_unread(session, principal.id)
    return AlertPage(items=_alerts(session, rows), next_cursor=next_cursor, unread=n_unread)


@router.get("/alerts/{alert_id}")
def read_alert(alert_id: AlertId, principal: Viewer, session: ReadSession) -> AlertOut:
    """An alert of yours, such as one whose id a target has got."""
    [alert] = _alerts(session, [service.get(session, principal.id, alert_id)])
    return alert


@router.patch("/alerts/{alert_id}")
def change_alert(alert_id: AlertId, body: AlertChange, principal: Viewer, session: WriteSession) -> AlertOut:
    """Mark an alert of yours as read or unread."""
    [alert] = _alerts(session, [service.set_read(session, principal.id, alert_id, read=body.read)])
    return alert


@router.post("/alerts/{alert_id}/read-until", status_code=204)
def read_alerts_until(alert_id: AlertId, principal: Viewer, session: WriteSession) -> None:
    """Mark an alert of yours, and all before it, as read."""
    service.read_until(session, principal.id, alert_id)


@router.post("/alert-targets/{target_id}/trial", status_code=201)
def try_alert_target(
    target_id: Annotated[str, Path(pattern=ULID, description="Id of the target.")],
    principal: Admin,
    session: WriteSession,
) -> AlertOut:
    """Raise an alert in your inbox that is delivered to a target."""
    [alert] = _alerts(session, [service.try_target(session, target_id, principal.id)])
    return alert


def _alerts(session: Session, rows: Sequence[Alert]) -> list[AlertOut]:
    names = repository.run_names(session, {row.subject_id for row in rows})
    deliveries = repository.deliveries(session, [row.id for row in rows])
    return [AlertOut.of(row, names.get(row.subject_id), deliveries.get(row.id, [])) for row in rows]
