"""Worker hosts: their heartbeats, the runs that wait for them, and what users may do with them."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Host, Run
from backend.db.changes import record_change, record_work
from backend.db.clock import database_now
from backend.fleet.hosts import repository
from backend.fleet.hosts.waiting import (
    ActiveHost,
    can_run,
    capacity_warnings,
    expected_wait_s,
    serves,
    why_waiting,
)
from backend.platform.errors import Conflict, NotFound
from backend.platform.files import existing_folder
from backend.platform.settings import Settings
from backend.specs.host_load import HostLoad
from backend.specs.problems import quoted
from backend.specs.states import RunState

ALIVE_LEASES = 2
"""A host without a heartbeat for this many leases counts as offline; workers send several per lease."""

MAX_AHEAD = 100
"""Number of runs ahead beyond which the start of a run is not estimated."""
MAX_LISTED = 5
"""Maximum number of the runs ahead that are named."""


@dataclass(frozen=True)
class PlaceInQueue:
    """A queued run's place among the runs that the same hosts may claim."""

    position: int
    """From 1."""
    waiting: int
    """Number of these runs."""
    ahead: Sequence[Run]
    """At most `MAX_LISTED` of the runs that are claimed before it, in order."""
    reason: str
    """Why no host has claimed the run."""
    expected_start_at: datetime | None
    unknown_start: str | None
    """Why the expected start is unknown."""


def find(session: Session, host_id: str, *, for_update: bool = False) -> Host | None:
    """The host, or None."""
    return repository.get(session, host_id, for_update=for_update)


def active_hosts(session: Session, lease_s: float) -> list[ActiveHost]:
    """Every host with its runs, by name."""
    now = database_now(session)
    runs = repository.runs_by_host(session)
    return [
        ActiveHost(host, alive=is_online(host, now, lease_s), runs=runs.get(host.id, []))
        for host in repository.all_hosts(session)
    ]


def load_of(host: Host, settings: Settings) -> HostLoad:
    """The load that a host has reported, with the disk of this process where they share it: once it is full,
    nothing stores what the worker reports."""
    load = HostLoad.model_validate(host.load)
    if host.id != settings.host_name:
        return load
    usage = shutil.disk_usage(existing_folder(settings.home_dir))
    if usage.total != load.disk_bytes:
        return load
    load.disk_free_bytes = usage.free
    if load.disk_problem is None and usage.free < settings.min_free_disk_bytes:
        load.disk_problem = (
            f"{usage.free / 2**20:,.0f} MiB free, less than {settings.min_free_disk_bytes / 2**20:,.0f} MiB "
            "(CALLBOARD_MIN_FREE_DISK_BYTES): claims no runs"
        )
    return load


def disk_problem(session: Session, host_id: str | None, settings: Settings) -> str | None:
    """What is wrong with the disk of a host; None if nothing is, or the host is unknown."""
    host = repository.get(session, host_id) if host_id is not None else None
    return load_of(host, settings).disk_problem if host is not None else None


def has_disk_problem(session: Session, settings: Settings) -> bool:
    """Whether a host whose worker was not stopped has a full or failing disk."""
    hosts = repository.all_hosts(session)
    return any(host.stopped_at is None and load_of(host, settings).disk_problem for host in hosts)


def queue_place(session: Session, run: Run, lease_s: float) -> PlaceInQueue:
    """A queued run's place in the queue, and when it is expected to start.

    Raises:
        Conflict: it is not queued.
    """
    if run.state != RunState.QUEUED:
        raise Conflict(f"the run is {run.state}: only a queued run has a place in the queue")
    hosts = active_hosts(session, lease_s)
    # If no host can run it, its place is that among the runs of the hosts that serve it.
    eligible = [active.host for active in hosts if can_run(active.host, run)] or [
        active.host for active in hosts if serves(active.host, run)
    ]
    queues = {run.queue}.union(*(host.queues for host in eligible)) if eligible else {run.queue}
    queue = repository.ahead(session, run, queues, {host.id for host in eligible}, MAX_AHEAD)
    at, unknown = None, None
    if queue.n_ahead > len(queue.runs):
        unknown = f"more than {MAX_AHEAD} runs are ahead of it"
    else:
        running = [held for host in hosts for held in host.runs]
        kinds = {(other.algorithm, other.environment) for other in (*queue.runs, *running)}
        rates = repository.recent_rates(session, kinds)
        wait_s = expected_wait_s(run, queue.runs, hosts, rates)
        if wait_s is None:
            unknown = "the durations of the runs ahead of it are unknown"
        else:
            at = database_now(session) + timedelta(seconds=wait_s)
    reason = why_waiting(run, hosts)
    if not any(can_run(active.host, run) and active.accepts for active in hosts):
        at, unknown = None, reason
    return PlaceInQueue(
        position=queue.n_ahead + 1,
        waiting=queue.n_waiting,
        ahead=queue.runs[:MAX_LISTED],
        reason=reason,
        expected_start_at=at,
        unknown_start=unknown,
    )


def warnings(session: Session, runs: Sequence[Run]) -> list[str]:
    """Why no host that may claim these runs, which are of one request, can run them well. There are no
    warnings for external runs, which no host may claim."""
    return capacity_warnings(runs, repository.all_hosts(session))


def is_alive(session: Session, host_id: str, lease_s: float) -> bool:
    """Whether a host is online."""
    host = find(session, host_id)
    return host is not None and is_online(host, database_now(session), lease_s)


def is_online(host: Host, now: datetime, lease_s: float) -> bool:
    """Whether a host has sent a heartbeat recently, and its worker has not stopped since."""
    return host.stopped_at is None and host.last_seen_at >= now - timedelta(seconds=ALIVE_LEASES * lease_s)


def is_taken(host: Host | None, worker_id: str | None, now: datetime, lease_s: float) -> bool:
    """Whether a worker of another home directory runs under a host's name.

    Args:
        host: the row of this name.
        worker_id: id of the worker that asks; None if its home has had none.
        now: the database's time.
        lease_s: seconds of a lease.
    """
    return host is not None and host.worker_id not in (None, worker_id) and is_online(host, now, lease_s)


def record_stop(session: Session, host_id: str, worker_id: str) -> None:
    """Record that a host's worker has stopped, unless another one has its name by now."""
    host = find(session, host_id, for_update=True)
    if host is not None and host.worker_id == worker_id:
        host.stopped_at = database_now(session)
        session.flush()
        record_change(session, "host", host_id)


def record_heartbeat(session: Session, host_id: str, **facts: Any) -> Host:
    """Store a host's heartbeat and facts, and return its row.

    Args:
        session: a writing session.
        host_id: the host's name.
        facts: values of the columns that a host reports.
    """
    now = database_now(session)
    host = find(session, host_id, for_update=True)
    if host is None:
        host = Host(id=host_id, first_seen_at=now, last_seen_at=now, draining=False, **facts)
        repository.add(session, host)
    else:
        for name, value in facts.items():
            setattr(host, name, value)
        host.last_seen_at = now
        host.stopped_at = None
    session.flush()
    record_change(session, "host", host_id, changed=["heartbeat"])
    return host


def set_draining(session: Session, host_id: str, draining: bool) -> None:
    """Drain a host, or let it accept runs again.

    Raises:
        NotFound: there is no such host.
    """
    host = _locked(session, host_id)
    host.draining = draining
    session.flush()
    record_change(session, "host", host_id)
    if not draining:
        for queue in host.queues:
            record_work(session, queue)


def remove(session: Session, host_id: str, lease_s: float) -> None:
    """Remove a host that is stopped or offline; its name is kept with the runs that it trained.

    Raises:
        NotFound: there is no such host.
        Conflict: it is alive, or holds runs.
    """
    host = _locked(session, host_id)
    if is_online(host, database_now(session), lease_s):
        raise Conflict(f"host {quoted(host_id)} is alive: stop its worker first")
    if repository.runs_by_host(session).get(host_id):
        raise Conflict(f"host {quoted(host_id)} holds runs until their leases expire: try again then")
    repository.delete(session, host)
    record_change(session, "host", host_id)


def _locked(session: Session, host_id: str) -> Host:
    host = find(session, host_id, for_update=True)
    if host is None:
        raise NotFound(f"host {quoted(host_id)} does not exist")
    return host
