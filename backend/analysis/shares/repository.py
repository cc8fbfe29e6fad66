"""Shares in the database, and what their pages need of runs."""

from collections.abc import Collection, Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from backend.db import Attempt, Host, Run, ScriptProcess, Share, User, keyset
from backend.db.clock import database_now


def add(session: Session, share: Share) -> None:
    """Store a new share, and delete those that have expired."""
    session.execute(delete(Share).where(Share.expires_at <= database_now(session)))
    session.add(share)
    session.flush()


def get(session: Session, share_id: str) -> Share | None:
    """The share, or None."""
    return session.get(Share, share_id)


def of_token(session: Session, token_hash: str) -> Share | None:
    """The share of a token that has not expired, or None."""
    of_hash = select(Share).where(Share.token_hash == token_hash)
    return session.scalars(of_hash.where(Share.expires_at > database_now(session))).one_or_none()


def count(session: Session, owner_id: str) -> int:
    """Number of a user's shares that have not expired."""
    counted = select(func.count()).select_from(Share).where(Share.owner_id == owner_id)
    return session.scalars(counted.where(Share.expires_at > database_now(session))).one()


def page(
    session: Session, owner_id: str | None, *, limit: int, cursor: str | None
) -> tuple[list[Share], str | None]:
    """One page of a user's shares that have not expired, or of all users' if `owner_id` is None, latest
    first."""
    query = select(Share).where(Share.expires_at > database_now(session))
    if owner_id is not None:
        query = query.where(Share.owner_id == owner_id)
    return keyset.page(
        session, query, by=Share.id, row_id=Share.id, descending=True, limit=limit, cursor=cursor
    )


def remove(session: Session, share: Share) -> None:
    """Delete a share."""
    session.delete(share)
    session.flush()


def user_names(session: Session, ids: Collection[str] | None = None) -> dict[str, str]:
    """Names of users by id; of all users without ids."""
    query = select(User.id, User.name)
    return dict(session.execute(query if ids is None else query.where(User.id.in_(ids))).all())


def existing_runs(session: Session, ids: Sequence[str]) -> list[Run]:
    """Those of the runs that exist, in this order."""
    rows = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(ids)))}
    return [rows[run_id] for run_id in dict.fromkeys(ids) if run_id in rows]


def existing_ids(session: Session, ids: Sequence[str]) -> frozenset[str]:
    """Those of these runs that exist."""
    return frozenset(session.scalars(select(Run.id).where(Run.id.in_(ids))))


def host_names(session: Session, run_ids: Sequence[str]) -> set[str]:
    """Names of all hosts, and of those where attempts and scripts of these runs ran."""
    hosts = set(session.scalars(select(Host.id)))
    hosts |= set(session.scalars(select(Attempt.host).where(Attempt.run_id.in_(run_ids)).distinct()))
    return hosts | {str(process.provenance.get("host", "")) for process in processes(session, run_ids)}


def processes(session: Session, run_ids: Sequence[str]) -> Sequence[ScriptProcess]:
    """The processes of scripts that have logged to these runs."""
    query = select(ScriptProcess).where(ScriptProcess.run_id.in_(run_ids))
    return session.scalars(query.order_by(ScriptProcess.run_id, ScriptProcess.source)).all()
