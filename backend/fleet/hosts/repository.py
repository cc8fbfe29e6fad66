"""Hosts in the database."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from pydantic import ValidationError
from sqlalchemy import and_, func, or_, select, tuple_
from sqlalchemy.orm import Session

from backend.db import Host, Run, Transition
from backend.specs.environments.custom import CustomEnvironment
from backend.specs.host_commands import HostCommand
from backend.specs.run_fields import CALLBOARD
from backend.specs.states import LEASED, RunState

CLAIM_ORDER = (Run.priority.desc(), Run.id)
"""The order in which workers claim queued runs: the highest priority, then the oldest."""

_RECENT_RUNS = 1000
_MIN_TRAINING_S = 10.0
"""A run's rate is known after this training time."""


@dataclass(frozen=True)
class Ahead:
    """The queue in front of a run."""

    runs: Sequence[Run]
    """The first of the runs ahead, in the order in which they are claimed."""
    n_ahead: int
    n_waiting: int
    """Number of queued runs that the same hosts may claim, this one included."""


def all_hosts(session: Session) -> Sequence[Host]:
    """Every host, by name."""
    return session.scalars(select(Host).order_by(Host.id)).all()


def get(session: Session, host_id: str, *, for_update: bool = False) -> Host | None:
    """The host, or None."""
    return session.get(Host, host_id, with_for_update=for_update or None, populate_existing=for_update)


def add(session: Session, host: Host) -> None:
    """Store a new host."""
    session.add(host)
    session.flush()


def delete(session: Session, host: Host) -> None:
    """Delete a host's row; its name is kept with the runs that it trained."""
    session.delete(host)
    session.flush()


def custom_environments(session: Session) -> dict[str, tuple[CustomEnvironment, list[str]]]:
    """Every custom environment by id, with its hosts and the description of the latest heartbeat; without
    those that a host refused."""
    environments: dict[str, tuple[CustomEnvironment, list[str]]] = {}
    for host in session.scalars(select(Host).order_by(Host.last_seen_at)):
        for row in host.custom_environments:
            if "refusal" in row:
                continue
            try:
                environment = CustomEnvironment.model_validate(row)
            except ValidationError:  # the row is damaged: the next heartbeat replaces it
                continue
            _, hosts = environments.get(environment.id, (environment, []))
            environments[environment.id] = (environment, sorted([*hosts, host.id]))
    return environments


def commands(session: Session) -> dict[str, tuple[HostCommand, list[str]]]:
    """Every command by name as in the latest heartbeat, with the hosts that define it so."""
    published: dict[str, tuple[HostCommand, list[str]]] = {}
    for host in session.scalars(select(Host).order_by(Host.last_seen_at)):
        for row in host.commands:
            try:
                command = HostCommand.model_validate(row)
            except ValidationError:  # the row is damaged: the next heartbeat replaces it
                continue
            before, names = published.get(command.name, (command, []))
            same = names if before == command else []
            published[command.name] = (command, sorted([*same, host.id]))
    return published


def refused_environments(session: Session) -> dict[str, str]:
    """Id of a custom environment -> why a host that lists it cannot use it; of the latest heartbeat."""
    return {
        str(row.get("id")): f"host {host.id} cannot use it: {row['refusal']}"
        for host in session.scalars(select(Host).order_by(Host.last_seen_at))
        for row in host.custom_environments
        if "refusal" in row
    }


def runs_by_host(session: Session) -> dict[str, list[Run]]:
    """Runs with a lease, by host."""
    by_host: dict[str, list[Run]] = defaultdict(list)
    for run in session.scalars(select(Run).where(Run.state.in_(LEASED)).order_by(Run.id)):
        if run.host is not None:
            by_host[run.host].append(run)
    return by_host


def waiting_by_queue(session: Session) -> dict[str, int]:
    """Number of queued runs by queue."""
    waiting = select(Run.queue, func.count()).where(Run.state == RunState.QUEUED).group_by(Run.queue)
    return dict(session.execute(waiting).all())


def oldest_waiting(session: Session) -> dict[str, datetime]:
    """When the run that has waited longest was queued, by queue."""
    queued_at = (
        select(func.max(Transition.time)).where(Transition.run_id == Run.id).correlate(Run).scalar_subquery()
    )
    waiting = (
        select(Run.queue, func.min(func.coalesce(queued_at, Run.created_at)))
        .where(Run.state == RunState.QUEUED)
        .group_by(Run.queue)
    )
    return dict(session.execute(waiting).all())


def training_rates(session: Session) -> dict[str | None, float]:
    """Agent steps per second of running runs, by host; None is the host of external runs. Those that count
    iterations are left out."""
    rates = (
        select(Run.host, func.sum(Run.agent_steps_per_s))
        .where(Run.state == RunState.RUNNING, Run.step_unit == "agent_steps")
        .group_by(Run.host)
    )
    return {host: float(rate or 0.0) for host, rate in session.execute(rates)}


def ahead(session: Session, run: Run, queues: Collection[str], hosts: Collection[str], limit: int) -> Ahead:
    """The queued runs that are claimed before this one by a host that may claim it.

    Args:
        session: a session.
        run: a queued run.
        queues: the queues that these hosts serve.
        hosts: the hosts that may claim the run.
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
    ours = and_(Run.origin == CALLBOARD, Run.demo.is_(False))  # the demo run was trained elsewhere
    recent = select(Run.id).where(ours).order_by(Run.id.desc()).limit(_RECENT_RUNS)
    rows = session.execute(
        select(Run.algorithm, Run.environment, Run.agent_steps / Run.wall_time_s).where(
            Run.id.in_(recent),
            tuple_(Run.algorithm, Run.environment).in_(kinds),
            Run.agent_steps > 0,
            Run.wall_time_s >= _MIN_TRAINING_S,
        )
    )
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for algorithm, environment, rate in rows:
        rates[algorithm, environment].append(float(rate))
    return {kind: median(rates) for kind, rates in rates.items()}
