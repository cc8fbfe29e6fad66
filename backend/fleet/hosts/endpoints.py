"""The machines that train, their load and their queues."""

from typing import Annotated

from fastapi import Path, Response
from sqlalchemy.orm import Session

from backend.fleet.hosts import repository, service
from backend.fleet.hosts.schemas import HostOut, HostPage, WaitingRunOut
from backend.http.access import Operator, Viewer
from backend.http.dependencies import AppStateDep, ReadSession, WriteSession
from backend.http.idempotency.route import IdempotentRoute
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.platform.settings import Settings
from backend.platform.text import Text

router = ResourceRouter(prefix="/hosts", tags=["hosts"], route_class=IdempotentRoute)

MAX_WAITING = 50
"""Waiting runs that the list of hosts names."""
HostId = Annotated[Text, Path(description="Id of the host.")]


@router.get("", response_model=HostPage)
def list_hosts(principal: Viewer, session: ReadSession, state: AppStateDep) -> Response:
    """Every worker host with its runs, and the number of queued runs per queue."""
    hosts = service.active_hosts(session, state.settings.lease_s)
    waiting = repository.first_waiting(session, MAX_WAITING)
    page = HostPage(
        items=[HostOut.of(host, service.load_of(host.host, state.settings)) for host in hosts],
        waiting=repository.waiting_by_queue(session),
        waiting_runs=[WaitingRunOut.of(run, hosts) for run in waiting],
    )
    return json_response(page)


@router.post("/{host_id}/drain")
def drain_host(host_id: HostId, principal: Operator, session: WriteSession, state: AppStateDep) -> HostOut:
    """Drain a host: it finishes its runs and accepts no new ones."""
    return _set_draining(session, host_id, True, state.settings)


@router.post("/{host_id}/undrain")
def undrain_host(host_id: HostId, principal: Operator, session: WriteSession, state: AppStateDep) -> HostOut:
    """Let a drained host accept runs again."""
    return _set_draining(session, host_id, False, state.settings)


@router.delete("/{host_id}", status_code=204)
def remove_host(host_id: HostId, principal: Operator, session: WriteSession, state: AppStateDep) -> None:
    """Remove a host that is stopped or offline. The next heartbeat of a worker of this name adds it again."""
    service.remove(session, host_id, state.settings.lease_s)


def _set_draining(session: Session, host_id: str, draining: bool, settings: Settings) -> HostOut:
    service.set_draining(session, host_id, draining)
    hosts = service.active_hosts(session, settings.lease_s)
    [active] = [host for host in hosts if host.host.id == host_id]
    return HostOut.of(active, service.load_of(active.host, settings))
