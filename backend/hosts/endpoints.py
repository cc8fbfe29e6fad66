"""Routes of `/hosts`."""

from fastapi import APIRouter, Response

from backend.hosts import service
from backend.hosts.schemas import HostOut, HostPage
from backend.http.access import Operator, Viewer
from backend.http.dependencies import AppStateDep, ReadSession, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.transfer import json_response
from backend.text import Text

router = APIRouter(prefix="/hosts", tags=["hosts"], route_class=IdempotentRoute)


@router.get("", response_model=HostPage)
def list_hosts(principal: Viewer, session: ReadSession, state: AppStateDep) -> Response:
    """Every worker host with its runs, and the number of queued runs per queue."""
    return json_response(service.listing(session, state.settings.lease_s))


@router.post("/{host_id}/drain")
def drain_host(host_id: Text, principal: Operator, session: WriteSession, state: AppStateDep) -> HostOut:
    """Drain a host: it finishes its runs and accepts no new ones."""
    return service.set_draining(session, host_id, True, state.settings.lease_s)


@router.post("/{host_id}/undrain")
def undrain_host(host_id: Text, principal: Operator, session: WriteSession, state: AppStateDep) -> HostOut:
    """Let a drained host accept runs again."""
    return service.set_draining(session, host_id, False, state.settings.lease_s)


@router.delete("/{host_id}", status_code=204)
def remove_host(host_id: Text, principal: Operator, session: WriteSession, state: AppStateDep) -> None:
    """Remove a host that is stopped or offline. The next heartbeat of a worker of this name adds it again."""
    service.remove(session, host_id, state.settings.lease_s)
