"""Hosts in the database."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import Host, Run
from backend.db.changes import note_host
from backend.db.clock import database_now
from backend.specs.environments.own import OwnWorld
from backend.specs.states import LEASED, RunState


def all_hosts(session: Session) -> Sequence[Host]:
    """Every host, by name."""
    return session.scalars(select(Host).order_by(Host.id)).all()


def get(session: Session, host_id: str, *, for_update: bool = False) -> Host | None:
    """The host, or none."""
    return session.get(Host, host_id, with_for_update=for_update or None, populate_existing=for_update)


def announce(session: Session, host_id: str, **facts: Any) -> Host:
    """A host says that it is there, and what it is now; gives its row.

    Args:
        session: a writing session.
        host_id: its name.
        facts: every column a host tells of itself.
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
    session.flush()
    note_host(session, host_id)
    return host


def own_worlds(session: Session) -> dict[str, tuple[OwnWorld, list[str]]]:
    """Every world of some host's own, by id, with its hosts; described as the newest of them has it."""
    found: dict[str, tuple[OwnWorld, list[str]]] = {}
    for host in session.scalars(select(Host).order_by(Host.last_seen_at)):
        for row in host.own_environments:
            world = OwnWorld.model_validate(row)
            _, hosts = found.get(world.id, (world, []))
            found[world.id] = (world, sorted([*hosts, host.id]))
    return found


def runs_by_host(session: Session) -> dict[str, list[Run]]:
    """The runs that some host holds."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in session.scalars(select(Run).where(Run.state.in_(LEASED)).order_by(Run.id)):
        if run.host is not None:
            found[run.host].append(run)
    return found


def waiting_by_queue(session: Session) -> dict[str, int]:
    """How many runs wait in each queue."""
    waiting = select(Run.queue, func.count()).where(Run.state == RunState.QUEUED).group_by(Run.queue)
    return dict(session.execute(waiting).all())


def set_draining(session: Session, host: Host, draining: bool) -> None:
    """Have a locked host take nothing new, or take work again."""
    host.draining = draining
    session.flush()
    note_host(session, host.id)
