"""Jobs in the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.db import Job, Run
from backend.db.run import has_packages
from backend.fleet.jobs.kinds import job_kinds

TURNS_REMEMBERED = timedelta(hours=1)
"""Whose latest job was claimed longer ago counts as new."""


def find(session: Session, kind: str, target_id: str, *, for_update: bool = False) -> Job | None:
    """The job of this kind for this target, or None."""
    statement = select(Job).where(Job.kind == kind, Job.target_id == target_id)
    return session.scalars(statement.with_for_update() if for_update else statement).one_or_none()


def find_all(session: Session, kind: str, target_ids: list[str]) -> dict[str, Job]:
    """The jobs of this kind, by target."""
    statement = select(Job).where(Job.kind == kind, Job.target_id.in_(target_ids))
    return {job.target_id: job for job in session.scalars(statement)}


def time_taken_s(session: Session, kind: str, requested_by: str, since: datetime) -> float:
    """How long the jobs of this kind have occupied hosts that this user or token has requested, and that were
    claimed since then."""
    mine = (Job.kind == kind) & (Job.requested_by == requested_by) & (Job.claimed_at > since)
    return float(session.scalars(select(func.coalesce(func.sum(Job.took_s), 0.0)).where(mine)).one())


def count_waiting(session: Session, kind: str) -> dict[str | None, int]:
    """How many jobs of this kind are queued or running, by who requested them."""
    statement = (
        select(Job.requested_by, func.count())
        .where(Job.kind == kind, Job.state.in_(("queued", "running")))
        .group_by(Job.requested_by)
    )
    return {row[0]: row[1] for row in session.execute(statement)}


def add(session: Session, job: Job) -> Job | None:
    """Store a new job. Returns the one that another transaction has just added for its target, if any."""
    try:
        with session.begin_nested():
            session.add(job)
    except IntegrityError:
        existing = find(session, job.kind, job.target_id, for_update=True)
        if existing is None:
            raise
        return existing
    return None


def next_claimable(
    session: Session,
    environments: Sequence[str],
    versions: Mapping[str, str],
    now: datetime,
    *,
    may_expire: bool = True,
) -> Job | None:
    """The next job that is queued or whose lease has expired, locked; None if there is none.

    Who requests jobs take turns: next is whose latest job was claimed longest ago, however many they have.
    Of theirs it is the oldest of the first rank that has any.

    Args:
        session: a writing session.
        environments: environments of the host; jobs of kinds that need none always count.
        versions: of the host's distributions, with which it loads algorithms and environments of runs.
        now: the database's time.
        may_expire: whether leases may have expired: hosts could renew theirs lately.
    """
    expired = (Job.state == "running") & (Job.lease_expires_at < now)
    claimable = Job.state == "queued"
    kinds = job_kinds().values()
    tables = dict.fromkeys(kind.environment_of for kind in kinds)
    rank = case({kind.name: kind.rank for kind in kinds}, value=Job.kind)
    turn = (
        select(Job.requested_by, func.max(Job.claimed_at).label("began_at"))
        .where(Job.claimed_at > now - TURNS_REMEMBERED)
        .group_by(Job.requested_by)
        .subquery()
    )
    return session.scalars(
        select(Job)
        .outerjoin(turn, Job.requested_by.is_not_distinct_from(turn.c.requested_by))
        .where(or_(claimable, expired) if may_expire else claimable)
        .where(or_(*(_can_be_done(table, environments, versions) for table in tables)))
        .order_by(turn.c.began_at.asc().nulls_first(), rank, Job.id)
        .limit(1)
        .with_for_update(of=Job, skip_locked=True)
    ).one_or_none()


def _can_be_done(
    table: type[Any] | None, environments: Sequence[str], versions: Mapping[str, str]
) -> ColumnElement[bool]:
    """Whether a job is of a kind that needs the environment of a row of this table, and a host with these
    environments and distributions can do it."""
    of_kind = Job.kind.in_([kind.name for kind in job_kinds().values() if kind.environment_of is table])
    if table is None:
        # Without those of a deleted run: while it can be restored, its jobs wait for that.
        return of_kind & Job.run_id.in_(select(Run.id))
    rows = select(table.id).where(table.environment.in_(environments))
    if table is Run:
        return of_kind & Job.run_id.in_(rows.where(has_packages(versions)))
    return of_kind & Job.target_id.in_(rows)


def running(session: Session, job_id: str, tries: int) -> Job | None:
    """The job, locked, while this try at it runs; None otherwise."""
    statement = select(Job).where(Job.id == job_id, Job.state == "running", Job.tries == tries)
    return session.scalars(statement.with_for_update()).one_or_none()
