"""Jobs in the database: asked for by the web, claimed by workers, under a lease like a run's."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.db import Job, Run
from backend.db.changes import note_job, note_work
from backend.db.clock import database_now
from backend.db.ids import new_id

MAX_TRIES = 3
"""A job whose worker died this often has failed."""


def find(session: Session, kind: str, target_id: str, *, for_update: bool = False) -> Job | None:
    """The job of this kind for this target."""
    statement = select(Job).where(Job.kind == kind, Job.target_id == target_id)
    return session.scalars(statement.with_for_update() if for_update else statement).one_or_none()


def find_all(session: Session, kind: str, target_ids: list[str]) -> dict[str, Job]:
    """The jobs of this kind by their target."""
    statement = select(Job).where(Job.kind == kind, Job.target_id.in_(target_ids))
    return {job.target_id: job for job in session.scalars(statement)}


def request(session: Session, kind: str, run_id: str, target_id: str, *, queue: str) -> Job:
    """Have a job done: a new one, or the one there is; one that failed is tried again.

    `queue` is whose workers are poked; any worker may do it.
    """
    job = find(session, kind, target_id, for_update=True)
    if job is None:
        job = Job(
            id=new_id(),
            run_id=run_id,
            kind=kind,
            target_id=target_id,
            created_at=database_now(session),
            state="queued",
            tries=0,
        )
        try:
            with session.begin_nested():
                session.add(job)
        except IntegrityError:
            asked = find(session, kind, target_id, for_update=True)
            if asked is None:
                raise
            return asked  # for somebody else, a moment ago
    elif job.state == "failed":
        job.state, job.tries, job.error = "queued", 0, None
    else:
        return job
    session.flush()
    note_work(session, queue)
    note_job(session, job.id, run_id, job.state)
    return job


def claim(session: Session, host: str, lease_s: float, environments: Sequence[str]) -> Job | None:
    """The oldest job to do that `host` can do, now leased to it: queued, or one whose lease has run out.

    Args:
        session: a writing session.
        host: who asks.
        lease_s: how long the claim holds without renewal.
        environments: the worlds it can make; jobs for runs in others are left for others.
    """
    now = database_now(session)
    expired = (Job.state == "running") & (Job.lease_expires_at < now)
    job = session.scalars(
        select(Job)
        .where(or_(Job.state == "queued", expired))
        .where(Job.run_id.in_(select(Run.id).where(Run.environment.in_(environments))))
        .order_by(Job.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).one_or_none()
    if job is None:
        return None
    if job.tries >= MAX_TRIES:
        _end(session, job, "failed", f"its worker died {job.tries} times")
        return claim(session, host, lease_s, environments)
    job.state, job.host, job.tries = "running", host, job.tries + 1
    job.lease_expires_at = now + timedelta(seconds=lease_s)
    session.flush()
    note_job(session, job.id, job.run_id, job.state)
    return job


def renew(session: Session, job_id: str, tries: int, lease_s: float) -> bool:
    """Hold a job longer. False when it is no longer this try's: drop the work."""
    job = _mine(session, job_id, tries)
    if job is None:
        return False
    job.lease_expires_at = database_now(session) + timedelta(seconds=lease_s)
    return True


def finish(session: Session, job_id: str, tries: int) -> bool:
    """The work is done. False when it is no longer this try's: its result must not be kept."""
    job = _mine(session, job_id, tries)
    if job is not None:
        _end(session, job, "done", None)
    return job is not None


def fail(session: Session, job_id: str, tries: int, error: str) -> bool:
    """The work cannot be done. False when it is no longer this try's."""
    job = _mine(session, job_id, tries)
    if job is not None:
        _end(session, job, "failed", error)
    return job is not None


def hand_back(session: Session, job_id: str, tries: int) -> bool:
    """The worker shuts down: the job waits again and the try does not count. False when it is not its own."""
    job = _mine(session, job_id, tries)
    if job is not None:
        job.tries -= 1
        _end(session, job, "queued", None)
    return job is not None


def _mine(session: Session, job_id: str, tries: int) -> Job | None:
    # The number of tries fences as a run's attempt does: a later try has another number.
    statement = select(Job).where(Job.id == job_id, Job.state == "running", Job.tries == tries)
    return session.scalars(statement.with_for_update()).one_or_none()


def _end(session: Session, job: Job, state: str, error: str | None) -> None:
    job.state, job.error = state, error
    job.host = job.lease_expires_at = None
    session.flush()
    note_job(session, job.id, job.run_id, state)
