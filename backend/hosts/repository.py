"""Hosts in the database."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from sqlalchemy import and_, func, or_, select, tuple_
from sqlalchemy.orm import Session

from backend.db import Host, Run
from backend.db.changes import record_host_change
from backend.db.clock import database_now
from backend.specs.environments.custom import CustomEnvironment
from backend.specs.run_fields import CALLBOARD
from backend.specs.states import LEASED, RunState

CLAIM_ORDER = (Run.priority.desc(), Run.id)
"""The order in which workers claim queued runs: the highest priority, then the oldest."""

ALIVE_LEASES = 2
"""A host without a heartbeat for this many leases counts as offline; workers send several per lease."""

_RECENT_RUNS = 1000
_MIN_TRAINING_S = 10.0
"""A run's rate is known after this training time."""


@dataclass(frozen=True)
class Ahead:
    """The queue in front of a run."""

    runs: Sequence[Run]
    """The first of them, in the order in which they are claimed."""
    n_ahead: int
    n_waiting: int
    """Number of queued runs that the same hosts may claim, this one included."""


def all_hosts(session: Session) -> Sequence[Host]:
    """Every host, by name."""
    return session.scalars(select(Host).order_by(Host.id)).all()


def get(session: Session, host_id: str, *, for_update: bool = False) -> Host | None:
    """The host, or None."""
    return session.get(Host, host_id, with_for_update=for_update or None, populate_existing=for_update)


def is_alive(host: Host, now: datetime, lease_s: float) -> bool:
    """Whether a host has sent a heartbeat recently, and its worker has not stopped since."""
    return host.stopped_at is None and host.last_seen_at >= now - timedelta(seconds=ALIVE_LEASES * lease_s)


def is_taken(host: Host | None, worker_id: str | None, now: datetime, lease_s: float) -> bool:
    """Whether a worker of another home directory runs under a host's name.

    Args:
        host: the row of this name.
        worker_id: of the worker that asks; None if its home has had none.
        now: the database's time.
        lease_s: seconds of a lease.
    """
    return host is not None and host.worker_id not in (None, worker_id) and is_alive(host, now, lease_s)


def record_stop(session: Session, host_id: str, worker_id: str) -> None:
    """Record that a host's worker has stopped, unless another one has its name by now."""
    host = get(session, host_id, for_update=True)
    if host is not None and host.worker_id == worker_id:
        host.stopped_at = database_now(session)
        session.flush()
        record_host_change(session, host_id)


def record_heartbeat(session: Session, host_id: str, **facts: Any) -> Host:
    """Store a host's heartbeat and facts, and return its row.

    Args:
        session: a writing session.
        host_id: its name.
        facts: values of the columns that a host reports.
    """
    now = database_now(session)
    host = get(session, host_id, for_update=True)
    if host is None:
        host = Host(id=host_id, first_seen_at=now, last_seen_at=now, draining=False, **facts)
        session.add(host)
    else:
        for name, value in facts.items():
            setattr(host, name, value)
        host.last_seen_at = now
        host.stopped_at = None
    session.flush()
    record_host_change(session, host_id)
    return host


def custom_environments(session: Session) -> dict[str, tuple[CustomEnvironment, list[str]]]:
    """Every custom environment by id, with its hosts and the description of the latest heartbeat; without
    those that a host refused."""
    found: dict[str, tuple[CustomEnvironment, list[str]]] = {}
    for host in session.scalars(select(Host).order_by(Host.last_seen_at)):
        for row in host.custom_environments:
            if "refusal" in row:
                continue
            environment = CustomEnvironment.model_validate(row)
            _, hosts = found.get(environment.id, (environment, []))
            found[environment.id] = (environment, sorted([*hosts, host.id]))
    return found


def refused_environments(session: Session) -> dict[str, str]:
    """Id of a custom environment -> why a host that lists it cannot use it; of the latest heartbeat."""
    return {
        row["id"]: f"host {host.id} cannot use it: {row['refusal']}"
        for host in session.scalars(select(Host).order_by(Host.last_seen_at))
        for row in host.custom_environments
        if "refusal" in row
    }


def runs_by_host(session: Session) -> dict[str, list[Run]]:
    """Runs with a lease, by host."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in session.scalars(select(Run).where(Run.state.in_(LEASED)).order_by(Run.id)):
        if run.host is not None:
            found[run.host].append(run)
    return found


def waiting_by_queue(session: Session) -> dict[str, int]:
    """Number of queued runs by queue."""
    waiting = select(Run.queue, func.count()).where(Run.state == RunState.QUEUED).group_by(Run.queue)
    return dict(session.execute(waiting).all())


def ahead(session: Session, run: Run, queues: Collection[str], hosts: Collection[str], limit: int) -> Ahead:
    """The queued runs that are claimed before this one by a host that may claim it.

    Args:
        session: a session.
        run: a queued run.
        queues: that these hosts serve.
        hosts: that may claim the run.
        limit: maximum number of rows.
    """
    rivals = and_(
        Run.state == RunState.QUEUED,
        or_(
            Run.id == run.id,  # which no host at all may be able to claim
            and_(Run.wanted_host.is_(None), Run.queue.in_(queues)),
            Run.wanted_host.in_(hosts),
        ),
    )
    before = or_(Run.priority > run.priority, and_(Run.priority == run.priority, Run.id < run.id))
    count = select(func.count()).select_from(Run)
    return Ahead(
        runs=session.scalars(select(Run).where(rivals, before).order_by(*CLAIM_ORDER).limit(limit)).all(),
        n_ahead=session.scalars(count.where(rivals, before)).one(),
        n_waiting=session.scalars(count.where(rivals)).one(),
    )


def first_waiting(session: Session, limit: int) -> Sequence[Run]:
    """The first queued runs of all queues, in the order in which they are claimed."""
    waiting = select(Run).where(Run.state == RunState.QUEUED)
    return session.scalars(waiting.order_by(*CLAIM_ORDER).limit(limit)).all()


def recent_rates(session: Session, kinds: Collection[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Median agent steps/s of recent runs, by algorithm and environment."""
    recent = select(Run.id).where(Run.origin == CALLBOARD).order_by(Run.id.desc()).limit(_RECENT_RUNS)
    rows = session.execute(
        select(Run.algorithm, Run.environment, Run.agent_steps / Run.wall_time_s).where(
            Run.id.in_(recent),
            tuple_(Run.algorithm, Run.environment).in_(kinds),
            Run.agent_steps > 0,
            Run.wall_time_s >= _MIN_TRAINING_S,
        )
    )
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for algorithm, environment, rate in rows:
        found[algorithm, environment].append(float(rate))
    return {kind: median(rates) for kind, rates in found.items()}


def remove(session: Session, host: Host) -> None:
    """Remove a locked host; its name is kept with the runs that it trained."""
    session.delete(host)
    session.flush()
    record_host_change(session, host.id)


def set_draining(session: Session, host: Host, draining: bool) -> None:
    """Drain a locked host, or let it accept runs again."""
    host.draining = draining
    session.flush()
    record_host_change(session, host.id)
