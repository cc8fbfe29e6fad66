"""Routes of `/hosts`."""

from fastapi import APIRouter

from backend.auth.access import Operator, Viewer
from backend.dependencies import ReadSession, ThisParts, WriteSession
from backend.hosts import service
from backend.hosts.schemas import HostOut, HostPage
from backend.idempotency.route import IdempotentRoute
from backend.text import Text

router = APIRouter(prefix="/hosts", tags=["hosts"], route_class=IdempotentRoute)


@router.get("")
def list_hosts(actor: Viewer, session: ReadSession, parts: ThisParts) -> HostPage:
    """Every worker host, what it runs, and how many runs wait in each queue."""
    return service.listing(session, parts.settings.lease_s)


@router.post("/{host_id}/drain")
def drain_host(host_id: Text, actor: Operator, session: WriteSession, parts: ThisParts) -> HostOut:
    """Let a host finish what it has and take nothing new."""
    return service.set_draining(session, host_id, True, parts.settings.lease_s)


@router.post("/{host_id}/undrain")
def undrain_host(host_id: Text, actor: Operator, session: WriteSession, parts: ThisParts) -> HostOut:
    """Let a drained host take work again."""
    return service.set_draining(session, host_id, False, parts.settings.lease_s)
