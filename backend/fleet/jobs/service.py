"""Jobs: requested by the web process, claimed by workers under a lease, like runs."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

from sqlalchemy.orm import Session

from backend.db import Job
from backend.db.base import new_id, storable
from backend.db.changes import record_change, record_work
from backend.db.clock import database_now
from backend.fleet.jobs import repository

MAX_TRIES = 3
"""A job fails when its worker has died this often."""
ENDED = ("done", "failed")
"""States of a job that has ended."""
_MODULES = re.compile(r"^(\w+\.)+(?=\w+: )")


def request(
    session: Session,
    kind: str,
    run_id: str | None,
    target_id: str,
    *,
    queue: str,
    requested_by: str | None = None,
) -> Job:
    """Queue a job: a new one, or the existing one; an ended one is run again.

    `run_id` is None for a job that belongs to no run. `queue` is the queue whose workers are woken; any
    worker may claim the job. `requested_by` is the user or token whose request it is.
    """
    job = repository.find(session, kind, target_id, for_update=True)
    if job is None:
        job = Job(
            id=new_id(),
            run_id=run_id,
            kind=kind,
            target_id=target_id,
            created_at=database_now(session),
            requested_by=requested_by,
            state="queued",
            tries=0,
        )
        if (existing := repository.add(session, job)) is not None:
            return existing
    elif job.state in ENDED:
        job.state, job.tries, job.error = "queued", 0, None
        job.requested_by = requested_by
    else:
        return job
    session.flush()
    record_work(session, queue)
    _record(session, job)
    return job


def claim(
    session: Session,
    host: str,
    lease_s: float,
    environments: Sequence[str],
    *,
    versions: Mapping[str, str] = MappingProxyType({}),
    may_expire: bool = True,
) -> Job | None:
    """Lease the next claimable job to `host`: a queued one, or one whose lease has expired.

    Args:
        session: a writing session.
        host: the claiming host.
        lease_s: how long the lease lasts without renewal.
        environments: the environments the host can run; jobs of other runs are left to other hosts, but for
            those of videos that scripts have sent.
        versions: of the host's distributions; jobs of runs of an algorithm or environment of a distribution
            need that.
        may_expire: whether leases may have expired: hosts could renew theirs lately.
    """
    now = database_now(session)
    job = repository.next_claimable(session, environments, versions, now, may_expire=may_expire)
    while job is not None and job.tries >= MAX_TRIES:
        _set_state(session, job, "failed", f"the worker died {job.tries} times while it ran this job")
        job = repository.next_claimable(session, environments, versions, now, may_expire=may_expire)
    if job is None:
        return None
    job.state, job.host, job.tries = "running", host, job.tries + 1
    job.claimed_at = now
    job.lease_expires_at = now + timedelta(seconds=lease_s)
    session.flush()
    _record(session, job)
    return job


def renew(session: Session, job_id: str, tries: int, lease_s: float) -> bool:
    """Renew the lease of a job. False if it is no longer held by this try: drop the work."""
    job = repository.running(session, job_id, tries)
    if job is None:
        return False
    job.lease_expires_at = database_now(session) + timedelta(seconds=lease_s)
    return True


def finish(session: Session, job_id: str, tries: int) -> bool:
    """Mark a job as done. False if it is no longer held by this try: its result must be discarded."""
    job = repository.running(session, job_id, tries)
    if job is not None:
        _set_state(session, job, "done", None)
    return job is not None


def fail(session: Session, job_id: str, tries: int, error: str) -> bool:
    """Mark a job as failed. False if it is no longer held by this try."""
    job = repository.running(session, job_id, tries)
    if job is not None:
        _set_state(session, job, "failed", storable(error))
    return job is not None


def requeue(session: Session, job_id: str, tries: int, *, counts: bool = False) -> bool:
    """Requeue a job; its try counts only if `counts`. False if it is no longer held by this try."""
    job = repository.running(session, job_id, tries)
    if job is not None:
        job.tries -= not counts
        _set_state(session, job, "queued", None)
    return job is not None


def reason_of(job: Job) -> str:
    """Why a job has failed: the last line of its error, where an exception has its name without modules."""
    lines = (job.error or "").strip().splitlines() or ["unknown error"]
    return _MODULES.sub("", lines[-1])


def _set_state(session: Session, job: Job, state: str, error: str | None) -> None:
    if job.state == "running" and job.claimed_at is not None:
        job.took_s += max(0.0, (database_now(session) - job.claimed_at).total_seconds())
    job.state, job.error = state, error
    job.host = job.lease_expires_at = None
    session.flush()
    _record(session, job)


def _record(session: Session, job: Job) -> None:
    """Record that the state of a job has changed, and with it what the job does for its run."""
    changed = ["state", job.kind, *(["result"] if job.state in ENDED else [])]
    record_change(session, "job", job.id, state=job.state, parents={"run": job.run_id}, changed=changed)
