"""Targets: where alerts are delivered outside of the pages. Admins create them."""

from typing import Annotated

from fastapi import Path

from backend.alerts.targets import repository, service
from backend.alerts.targets.schemas import TargetOut, TargetPage, TargetRequest
from backend.http.access import Admin, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter, WritingRoute
from backend.platform.principals import Role
from backend.specs.fields import ULID

router = ResourceRouter(prefix="/alert-targets", tags=["alert-targets"], route_class=WritingRoute)

TargetId = Annotated[str, Path(pattern=ULID, description="Id of the target.")]


@router.get("")
def list_alert_targets(
    principal: Viewer, session: ReadSession, limit: Limit = 100, cursor: Cursor = None
) -> TargetPage:
    """Targets by name. Their addresses are returned to admins only, and without secrets."""
    rows, next_cursor = repository.page(session, limit=limit, cursor=cursor)
    for_admin = principal.role == Role.ADMIN
    return TargetPage(items=[TargetOut.of(row, for_admin=for_admin) for row in rows], next_cursor=next_cursor)


@router.post("", status_code=201)
def create_alert_target(body: TargetRequest, principal: Admin, session: WriteSession) -> TargetOut:
    """Create a target. Its address is stored as it is, since workers need it, and never returned."""
    return TargetOut.of(service.create(session, body, principal.id), for_admin=True)


@router.delete("/{target_id}", status_code=204)
def delete_alert_target(target_id: TargetId, principal: Admin, session: WriteSession) -> None:
    """Delete a target, with what waits to be delivered to it."""
    service.delete(session, target_id)
