"""Who may work on a run: claim, lease, expiry, fencing. The heart of "nothing lost, nothing doubled".

A claim gives a host the run's next attempt number and a lease that ends by the database's clock unless it
is renewed. Every write of a worker first locks the run with `held`, which refuses all but the newest
attempt: a worker that slept through its lease changes nothing when it wakes.

All functions work inside the caller's writing transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, or_, select, tuple_, update
from sqlalchemy.orm import Session

from backend.checkpoints.repository import NEWEST_FIRST
from backend.db import Attempt, Checkpoint, Episode, Evaluation, Host, Run
from backend.db.clock import database_now
from backend.metrics import repository as metrics
from backend.runs import repository as runs
from backend.specs.states import LEASED, RunState
from workers.text import storable

MAX_ATTEMPTS_WITHOUT_CHECKPOINT = 3
"""A run that dies this often without getting anywhere has failed."""


class Superseded(Exception):
    """The run is another attempt's now, or nobody's: write nothing, end the engine."""


@dataclass(frozen=True)
class Claim:
    """What a worker has won."""

    run_id: str
    attempt: int
    memory_estimate_bytes: int


def claim(
    session: Session, host: str, *, queues: Sequence[str], free_memory_bytes: int, lease_s: float
) -> Claim | None:
    """Claim the best run this host can and may have: highest priority, then oldest. None where there is none.

    What the host has said of itself decides: a run for a world it cannot make, or for a GPU it has not, is
    left for others.

    Args:
        session: a writing session.
        host: this host's id; it must have a row, and a draining one gets nothing.
        queues: the queues it serves. A run that wants this very host is eligible whatever its queue.
        free_memory_bytes: runs estimated to need more are left for others.
        lease_s: how long the claim holds without renewal.
    """
    row = session.get(Host, host)
    if row is None or row.draining:
        return None
    able = [Run.environment.in_(row.environments), Run.memory_estimate_bytes <= free_memory_bytes]
    if not any(device.startswith("cuda") for device in row.devices):
        able.append(Run.spec["device"].as_string() != "cuda")
    run = session.scalars(
        select(Run)
        .where(
            Run.state == RunState.QUEUED,
            or_(and_(Run.wanted_host.is_(None), Run.queue.in_(queues)), Run.wanted_host == host),
            *able,
        )
        .order_by(Run.priority.desc(), Run.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).first()
    if run is None:
        return None
    take(session, run, host, lease_s)
    return Claim(run.id, run.attempt, run.memory_estimate_bytes)


def take(session: Session, run: Run, host: str, lease_s: float) -> None:
    """Open the next attempt of a locked, queued run and lease it to a host."""
    now = database_now(session)
    run.attempt += 1
    run.attempts_without_checkpoint += 1
    run.host = host
    run.lease_expires_at = now + timedelta(seconds=lease_s)
    run.error = None
    session.add(Attempt(run_id=run.id, number=run.attempt, host=host, claimed_at=now))
    runs.transition(session, run, RunState.STARTING, f"claimed by {host}")


def renew(session: Session, host: str, held: Mapping[str, int], lease_s: float) -> dict[str, str | None]:
    """Renew the leases of a host's runs, given as run id -> attempt.

    A lease that has run out is renewed as well, as long as nobody has noticed.

    Returns:
        Those still held, each with `stop` or `kill` where someone wants it to end. The others are lost.
    """
    if not held:
        return {}
    statement = (
        update(Run)
        .where(Run.host == host, Run.state.in_(LEASED), tuple_(Run.id, Run.attempt).in_(held.items()))
        .values(lease_expires_at=database_now(session) + timedelta(seconds=lease_s))
        .returning(Run.id, Run.stop_requested)
    )
    return dict(session.execute(statement).all())


def expire(session: Session) -> list[str]:
    """Take back every run whose lease has run out: `lost`, then queued again, stopped or failed."""
    expired = session.scalars(
        select(Run)
        .where(Run.state.in_(LEASED), Run.lease_expires_at < database_now(session))
        .with_for_update(skip_locked=True)
    ).all()
    for run in expired:
        runs.transition(session, run, RunState.LOST, f"{run.host} no longer renews its lease")
        after, reason = after_death(run)
        release(session, run, after, reason)
    return [run.id for run in expired]


def held(session: Session, run_id: str, attempt: int) -> Run:
    """Lock a run for a write of this attempt.

    Raises:
        Superseded: the attempt holds it no more.
    """
    run = runs.get(session, run_id, for_update=True)
    if run is None or run.attempt != attempt or run.state not in LEASED:
        raise Superseded(f"run {run_id}, attempt {attempt}")
    return run


def checkpoints(session: Session, run_id: str) -> Sequence[Checkpoint]:
    """The checkpoints a run can go on from, the newest first."""
    return session.scalars(
        select(Checkpoint)
        .where(Checkpoint.run_id == run_id, ~Checkpoint.removed, ~Checkpoint.superseded)
        .order_by(*NEWEST_FIRST)
    ).all()


def begin(session: Session, run_id: str, attempt: int, checkpoint: Checkpoint | None) -> dict[str, Any]:
    """Settle where a claimed attempt goes on from: all that came after it is superseded.

    Returns:
        The spec to train by: an earlier attempt's last words may have changed it.

    Raises:
        Superseded: the attempt holds the run no more.
    """
    run = held(session, run_id, attempt)
    run.agent_steps = checkpoint.agent_steps if checkpoint else 0
    run.frames = checkpoint.frames if checkpoint else 0
    run.updates = checkpoint.updates if checkpoint else 0
    run.episodes = checkpoint.episodes if checkpoint else 0
    run.wall_time_s = checkpoint.wall_time_s if checkpoint else 0.0
    run.score = checkpoint.score if checkpoint else None
    run.best_return = checkpoint.best_return if checkpoint else None
    session.get_one(Attempt, (run_id, attempt)).resumed_from_agent_steps = run.agent_steps
    # From scratch, even a point at step 0 is written anew.
    after = run.agent_steps if checkpoint else -1
    metrics.cut(session, run_id, after, runs.touch(session, run))
    for table in (Episode, Checkpoint, Evaluation):
        session.execute(
            update(table).where(table.run_id == run_id, table.agent_steps > after).values(superseded=True)
        )
    return run.spec


def after_death(run: Run) -> tuple[RunState, str]:
    """What becomes of a locked run whose engine has died or is out of reach, and why."""
    if run.stop_requested:
        return RunState.STOPPED, f"it had been asked to {run.stop_requested}"
    if run.attempts_without_checkpoint >= MAX_ATTEMPTS_WITHOUT_CHECKPOINT:
        return RunState.FAILED, f"{MAX_ATTEMPTS_WITHOUT_CHECKPOINT} attempts without a new checkpoint"
    return RunState.QUEUED, "to go on from its newest checkpoint"


def release(session: Session, run: Run, after: RunState, reason: str, error: str | None = None) -> None:
    """End the present attempt of a locked run: the attempt's row is closed, the run moves to `after`."""
    attempt = session.get_one(Attempt, (run.id, run.attempt))
    attempt.ended_at = database_now(session)
    reason = storable(reason)
    attempt.outcome = f"{after}: {reason}"
    run.error = storable(error) if error else None
    runs.transition(session, run, after, reason)
