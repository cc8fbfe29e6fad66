"""Play sessions in the database."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from backend.db import Attempt, PlaySession, Run, User, keyset
from backend.db.run import has_packages


def add(session: Session, play: PlaySession) -> None:
    """Store a new session."""
    session.add(play)
    session.flush()


def get(session: Session, session_id: str, *, for_update: bool = False) -> PlaySession | None:
    """The play session, or None."""
    return session.get(
        PlaySession, session_id, with_for_update=for_update or None, populate_existing=for_update
    )


def page(
    session: Session, *, user_id: str | None, state: str | None, limit: int, cursor: str | None
) -> tuple[list[PlaySession], str | None]:
    """One page of sessions, latest first, and the cursor of the next page."""
    statement = select(PlaySession)
    if user_id is not None:
        statement = statement.where(PlaySession.user_id == user_id)
    if state is not None:
        statement = statement.where(PlaySession.state == state)
    return keyset.page(
        session,
        statement,
        by=PlaySession.created_at,
        row_id=PlaySession.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def names(session: Session, sessions: Sequence[PlaySession]) -> dict[str, str]:
    """The names of the players, by id."""
    users = select(User.id, User.name).where(User.id.in_({row.user_id for row in sessions}))
    return {row[0]: row[1] for row in session.execute(users)}


def packages(session: Session, run_id: str, attempt: int) -> dict[str, str]:
    """Versions of the packages of an attempt of a run; empty if they are not known."""
    row = session.get(Attempt, (run_id, attempt))
    return {} if row is None or row.provenance is None else dict(row.provenance.get("packages", {}))


def count_open(session: Session, user_id: str | None = None) -> int:
    """How many sessions wait or are played, of all users or of one."""
    statement = select(func.count()).select_from(PlaySession).where(PlaySession.state != "ended")
    if user_id is not None:
        statement = statement.where(PlaySession.user_id == user_id)
    return session.scalars(statement).one()


def running_by_host(session: Session) -> dict[str, int]:
    """How many sessions each host plays."""
    statement = (
        select(PlaySession.host, func.count())
        .where(PlaySession.state == "running")
        .group_by(PlaySession.host)
    )
    return {row[0]: row[1] for row in session.execute(statement) if row[0] is not None}


def queued(session: Session, environments: Collection[str]) -> Iterator[PlaySession]:
    """The sessions that wait for one of these environments, those that wait longest first; each is locked
    when it is reached."""
    waiting = select(PlaySession.id).where(
        PlaySession.state == "queued", PlaySession.environment.in_(environments)
    )
    for id_ in session.scalars(waiting.order_by(PlaySession.id)).all():
        locked = select(PlaySession).where(PlaySession.id == id_, PlaySession.state == "queued")
        play = session.scalars(locked.with_for_update(skip_locked=True)).one_or_none()
        if play is not None:
            yield play


def can_load(session: Session, run_id: str, versions: Mapping[str, str]) -> bool:
    """Whether a host with these versions of packages can load agents of a run; True if the run is gone."""
    lacking = select(Run.id).where(Run.id == run_id, ~has_packages(versions))
    return session.scalars(lacking).first() is None


def renew(session: Session, host: str, ids: Collection[str], expires_at: datetime) -> set[str]:
    """Renew the leases of a host's sessions; return those that it still holds."""
    held = (PlaySession.id.in_(ids), PlaySession.state == "running", PlaySession.host == host)
    session.execute(update(PlaySession).where(*held).values(lease_expires_at=expires_at))
    return set(session.scalars(select(PlaySession.id).where(*held)))


def running_on(session: Session, host: str) -> Sequence[PlaySession]:
    """The sessions that a host plays, locked."""
    return session.scalars(
        select(PlaySession).where(PlaySession.state == "running", PlaySession.host == host).with_for_update()
    ).all()


def expired(session: Session, now: datetime) -> Sequence[PlaySession]:
    """The sessions whose lease has run out, locked."""
    return session.scalars(
        select(PlaySession)
        .where(PlaySession.state == "running", PlaySession.lease_expires_at < now)
        .with_for_update(skip_locked=True)
    ).all()


def abandoned(session: Session, before: datetime) -> Sequence[PlaySession]:
    """The sessions that have waited since before this time, locked."""
    return session.scalars(
        select(PlaySession)
        .where(PlaySession.state == "queued", PlaySession.created_at < before)
        .with_for_update(skip_locked=True)
    ).all()


def remove_ended(session: Session, before: datetime, limit: int) -> int:
    """Delete at most `limit` of the sessions that ended before this time; return their number."""
    ended = select(PlaySession.id).where(PlaySession.state == "ended", PlaySession.ended_at < before)
    ids = session.scalars(ended.limit(limit)).all()
    session.execute(delete(PlaySession).where(PlaySession.id.in_(ids)))
    return len(ids)


def has_late(session: Session, now: datetime, queued_before: datetime) -> bool:
    """Whether a session's lease has run out, or one has waited since before `queued_before`."""
    late = or_(
        (PlaySession.state == "running") & (PlaySession.lease_expires_at < now),
        (PlaySession.state == "queued") & (PlaySession.created_at < queued_before),
    )
    return session.scalars(select(PlaySession.id).where(late).limit(1)).first() is not None
