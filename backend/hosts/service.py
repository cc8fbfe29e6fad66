"""Worker hosts and their runs."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.changes import record_work
from backend.db.clock import database_now
from backend.errors import Conflict, NotFound
from backend.hosts import repository
from backend.hosts.schemas import HostOut, HostPage, HostRun, QueuePlace, WaitingRun, WaitingRunOut
from backend.hosts.waiting import ActiveHost, can_run, expected_wait_s, misfits, serves, why_waiting
from backend.specs.problems import quoted
from backend.specs.states import RunState

MAX_WAITING = 50
"""Waiting runs that the list of hosts names."""
MAX_AHEAD = 100
"""Number of runs ahead beyond which the start of a run is not estimated."""
MAX_LISTED = 5
"""Maximum number of the runs ahead that are named."""


def listing(session: Session, lease_s: float) -> HostPage:
    """Every host with its runs, and the number of queued runs."""
    hosts = _hosts(session, lease_s)
    waiting = repository.first_waiting(session, MAX_WAITING)
    return HostPage(
        items=[_out(host) for host in hosts],
        waiting=repository.waiting_by_queue(session),
        waiting_runs=[_waiting(run, hosts) for run in waiting],
    )


def queue_place(session: Session, run: Run, lease_s: float) -> QueuePlace:
    """A queued run's place in the queue, and when it is expected to start.

    Raises:
        Conflict: it is not queued.
    """
    if run.state != RunState.QUEUED:
        raise Conflict(f"the run is {run.state}: only a queued run has a place in the queue")
    hosts = _hosts(session, lease_s)
    eligible = [each.host for each in hosts if can_run(each.host, run)] or [
        each.host for each in hosts if serves(each.host, run)
    ]
    queues = {run.queue}.union(*(host.queues for host in eligible)) if eligible else {run.queue}
    found = repository.ahead(session, run, queues, {host.id for host in eligible}, MAX_AHEAD)
    at, unknown = None, None
    if found.n_ahead > len(found.runs):
        unknown = f"more than {MAX_AHEAD} runs are ahead of it"
    else:
        active = [each for host in hosts for each in host.runs]
        kinds = {(each.algorithm, each.environment) for each in (*found.runs, *active)}
        rates = repository.recent_rates(session, kinds)
        wait_s = expected_wait_s(run, found.runs, hosts, rates)
        if wait_s is None:
            unknown = "the durations of the runs ahead of it are unknown"
        else:
            at = database_now(session) + timedelta(seconds=wait_s)
    reason = why_waiting(run, hosts)
    if not any(can_run(each.host, run) and each.accepts for each in hosts):
        at, unknown = None, reason
    return QueuePlace(
        position=found.n_ahead + 1,
        waiting=found.n_waiting,
        ahead=[WaitingRun.model_validate(each) for each in found.runs[:MAX_LISTED]],
        reason=reason,
        expected_start_at=at,
        unknown_start=unknown,
    )


def warnings(session: Session, runs: Sequence[Run]) -> list[str]:
    """Why no host that may claim these runs, which are of one request, can run them well; none for external
    runs, which no host may claim."""
    return misfits(runs, repository.all_hosts(session))


def is_alive(session: Session, host_id: str, lease_s: float) -> bool:
    """Whether a host has sent a heartbeat recently, and its worker has not stopped since."""
    host = repository.get(session, host_id)
    return host is not None and repository.is_alive(host, database_now(session), lease_s)


def set_draining(session: Session, host_id: str, draining: bool, lease_s: float) -> HostOut:
    """Drain a host, or let it accept runs again.

    Raises:
        NotFound: there is no such host.
    """
    host = repository.get(session, host_id, for_update=True)
    if host is None:
        raise NotFound(f"host {quoted(host_id)} does not exist")
    repository.set_draining(session, host, draining)
    if not draining:
        for queue in host.queues:
            record_work(session, queue)
    return next(out for out in listing(session, lease_s).items if out.id == host.id)


def remove(session: Session, host_id: str, lease_s: float) -> None:
    """Remove a host that is stopped or offline.

    Raises:
        NotFound: there is no such host.
        Conflict: it is alive, or holds runs.
    """
    host = repository.get(session, host_id, for_update=True)
    if host is None:
        raise NotFound(f"host {quoted(host_id)} does not exist")
    if repository.is_alive(host, database_now(session), lease_s):
        raise Conflict(f"host {quoted(host_id)} is alive: stop its worker first")
    if repository.runs_by_host(session).get(host_id):
        raise Conflict(f"host {quoted(host_id)} holds runs until their leases expire: try again then")
    repository.remove(session, host)


def _hosts(session: Session, lease_s: float) -> list[ActiveHost]:
    now = database_now(session)
    runs = repository.runs_by_host(session)
    return [
        ActiveHost(host, alive=repository.is_alive(host, now, lease_s), runs=runs.get(host.id, []))
        for host in repository.all_hosts(session)
    ]


def _out(active: ActiveHost) -> HostOut:
    host = active.host
    row = {name: getattr(host, name) for name in HostOut.model_fields if hasattr(host, name)}
    runs = [
        HostRun(
            id=run.id,
            name=run.name,
            state=run.state,
            progress=run.progress,
            time_left_s=run.time_left_s,
            agent_steps_per_s=run.agent_steps_per_s,
        )
        for run in active.runs
    ]
    return HostOut.model_validate(row | {"alive": active.alive, "runs": runs})


def _waiting(run: Run, hosts: Sequence[ActiveHost]) -> WaitingRunOut:
    row = WaitingRun.model_validate(run).model_dump()
    return WaitingRunOut(**row, reason=why_waiting(run, hosts))
