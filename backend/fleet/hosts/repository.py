"""Hosts in the database."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple

from pydantic import ValidationError
from sqlalchemy import and_, func, or_, select, tuple_
from sqlalchemy.orm import Session

from backend.db import Host, Run, Transition
from backend.db.clock import database_now
from backend.specs.environments.custom import CustomEnvironment
from backend.specs.host_commands import HostCommand
from backend.specs.run_fields import CALLBOARD
from backend.specs.states import LEASED, RunState

CLAIM_ORDER = (Run.priority.desc(), Run.id)
"""The order in which workers claim queued runs: the highest priority, then the oldest."""

_RECENT = timedelta(minutes=2)
"""Of several definitions of a command, those of hosts that were heard of in this time come first."""
_RECENT_RUNS = 1000
_MIN_TRAINING_S = 10.0
"""A run's rate is known after this training time."""


class PublishedCommand(NamedTuple):
    """A command as hosts define it."""

    command: HostCommand
    hosts: list[str]
    """The hosts that define it so."""
    other_hosts: list[str]
    """Those that define it otherwise."""


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


def commands(session: Session, wanted_host: object = None) -> dict[str, PublishedCommand]:
    """Every command by name.

    Of several definitions it is that of the wanted host, else that of the most hosts which were heard of
    recently, else that of the most hosts, else that of the host whose name comes first.
    """
    recent = database_now(session) - _RECENT
    definitions: dict[str, dict[str | None, list[tuple[HostCommand, Host]]]]
    definitions = defaultdict(lambda: defaultdict(list))
    for host in all_hosts(session):
        for row in host.commands:
            try:
                command = HostCommand.model_validate(row)
            except ValidationError:  # the row is damaged: the next heartbeat replaces it
                continue
            definitions[command.name][command.definition].append((command, host))

    def rank(equal: Sequence[tuple[HostCommand, Host]]) -> tuple[bool, int, int]:
        n_recent = sum(host.stopped_at is None and host.last_seen_at >= recent for _, host in equal)
        return any(host.id == wanted_host for _, host in equal), n_recent, len(equal)

    published = {}
    for name, by_digest in definitions.items():
        chosen = max(by_digest.values(), key=rank)
        others = [host.id for equal in by_digest.values() if equal is not chosen for _, host in equal]
        published[name] = PublishedCommand(chosen[0][0], [host.id for _, host in chosen], sorted(others))
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
