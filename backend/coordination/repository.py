"""The SQL of claims: eligible runs, leases, and the data that a resumed attempt supersedes."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, delete, insert, or_, select, tuple_, update
from sqlalchemy.orm import Session

from backend.db import Attempt, Checkpoint, CleanUp, Episode, Evaluation, Host, Run
from backend.db.json_values import json_text
from backend.db.run import has_packages
from backend.fleet.hosts.repository import CLAIM_ORDER
from backend.specs.algorithms import ALGORITHMS
from backend.specs.extras import missing_extras
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import LEASED, RunState


def first_eligible(session: Session, host: Host, queues: Sequence[str], free_memory_bytes: int) -> Run | None:
    """The queued run that a host claims next, locked; runs that are locked already are left out.

    It may be a run whose specification cannot be read.
    """
    eligible = [
        or_(Run.environment.in_(host.environments), Run.origin == EXTERNAL),
        Run.memory_estimate_bytes <= free_memory_bytes,
    ]
    device, has_gpu = json_text(Run.spec, ("device",)), any(name.startswith("cuda") for name in host.devices)
    if not has_gpu:
        eligible.append(or_(device.is_(None), device != "cuda"))  # NULL where the spec is damaged
    eligible.append(has_packages(host.provided))
    lacking = missing_extras(host.versions)
    eligible.append(Run.algorithm.not_in([a.id for a in ALGORITHMS.values() if a.extra in lacking]))
    return session.scalars(
        select(Run)
        .where(
            Run.state == RunState.QUEUED,
            or_(and_(Run.wanted_host.is_(None), Run.queue.in_(queues)), Run.wanted_host == host.id),
            *eligible,
        )
        .order_by(*CLAIM_ORDER)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).first()


def renew(
    session: Session, host: str, held: Mapping[str, int], expires_at: datetime
) -> dict[str, str | None]:
    """Set the end of the leases of a host's attempts. Returns the stop request of each run still held."""
    statement = (
        update(Run)
        .where(Run.host == host, Run.state.in_(LEASED), tuple_(Run.id, Run.attempt).in_(held.items()))
        .values(lease_expires_at=expires_at)
        .returning(Run.id, Run.stop_requested)
    )
    return dict(session.execute(statement).all())


def has_expired(session: Session, now: datetime) -> bool:
    """Whether a run's lease has expired."""
    late = select(Run.id).where(Run.state.in_(LEASED), Run.lease_expires_at < now)
    return session.scalars(late.limit(1)).first() is not None


def check_writable(session: Session) -> None:
    """Write a row that no other transaction sees: it fails if the database is read-only, locked or full."""
    session.execute(insert(CleanUp).values(id=0))
    session.execute(delete(CleanUp).where(CleanUp.id == 0))


def expired(session: Session, now: datetime) -> Sequence[Run]:
    """The runs whose lease has expired, locked; those that are locked already are left out."""
    return session.scalars(
        select(Run).where(Run.state.in_(LEASED), Run.lease_expires_at < now).with_for_update(skip_locked=True)
    ).all()


def supersede(session: Session, run_id: str, after_agent_steps: int) -> None:
    """Mark the episodes, checkpoints and evaluations of a run after these agent steps as superseded."""
    for table in (Episode, Checkpoint, Evaluation):
        session.execute(
            update(table)
            .where(table.run_id == run_id, table.agent_steps > after_agent_steps)
            .values(superseded=True)
        )


def latest_hosts(session: Session, run_id: str, n: int) -> Sequence[str]:
    """The hosts of the latest attempts at a run, one for each attempt."""
    latest = select(Attempt.host).where(Attempt.run_id == run_id)
    return session.scalars(latest.order_by(Attempt.number.desc()).limit(n)).all()
