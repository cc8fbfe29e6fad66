"""Hosts: who is there, and who takes work."""

from datetime import timedelta

from sqlalchemy.orm import Session

from backend.db import Host, Run
from backend.db.changes import note_work
from backend.db.clock import database_now
from backend.errors import NotFound
from backend.hosts import repository
from backend.hosts.schemas import HostOut, HostPage, HostRun

ALIVE_LEASES = 2
"""A host not heard of for this many leases is taken for dead; each worker speaks up several times a lease."""


def listing(session: Session, lease_s: float) -> HostPage:
    """Every host with what it runs, and what waits."""
    alive_since = database_now(session) - timedelta(seconds=ALIVE_LEASES * lease_s)
    runs = repository.runs_by_host(session)
    items = [
        _out(host, runs.get(host.id, []), host.last_seen_at >= alive_since)
        for host in repository.all_hosts(session)
    ]
    return HostPage(items=items, waiting=repository.waiting_by_queue(session))


def set_draining(session: Session, host_id: str, draining: bool, lease_s: float) -> HostOut:
    """Have a host take nothing new, or take work again.

    Raises:
        NotFound: there is no such host.
    """
    host = repository.get(session, host_id, for_update=True)
    if host is None:
        raise NotFound(f"there is no host {host_id!r:.80}")
    repository.set_draining(session, host, draining)
    if not draining:
        for queue in host.queues:
            note_work(session, queue)
    return next(out for out in listing(session, lease_s).items if out.id == host.id)


def _out(host: Host, runs: list[Run], alive: bool) -> HostOut:
    row = {name: getattr(host, name) for name in HostOut.model_fields if hasattr(host, name)}
    return HostOut.model_validate(
        row | {"alive": alive, "runs": [HostRun.model_validate(run) for run in runs]}
    )
