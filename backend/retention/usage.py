"""Sizes in the database: what takes space, by kind and by run."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Subquery, func, or_, select, text, union_all
from sqlalchemy.orm import Session

from backend.db import Attempt, Checkpoint, Episode, RemovedFile, Run, Video

_LOG_BYTES = func.coalesce(Attempt.log_bytes, Attempt.log_offset_bytes)


def _sizes(*rows: tuple[Any, ColumnElement[int], ColumnElement[bool]]) -> Subquery:
    """Run and size of each file: of each table, the size of a row's file, and which rows have one."""
    parts = [select(table.run_id, size.label("size")).where(exists) for table, size, exists in rows]
    return (union_all(*parts) if len(parts) > 1 else parts[0]).subquery()


_SIZES = {
    "checkpoints": _sizes((Checkpoint, Checkpoint.size_bytes.expression, Checkpoint.removed.is_(False))),
    "replays": _sizes((Episode, func.coalesce(Episode.replay_bytes, 0), Episode.removed.is_(False))),
    "videos": _sizes(
        (Episode, func.coalesce(Episode.video_bytes, 0), Episode.video.is_not(None)),
        (Video, Video.video_bytes + Video.sent_bytes, Video.video.is_not(None) | Video.sent.is_not(None)),
    ),
    "event_logs": _sizes((Attempt, _LOG_BYTES, _LOG_BYTES > 0)),
}
"""By kind, the run and the size of each file."""


def by_kind(session: Session) -> dict[str, tuple[int, int]]:
    """Number and size in bytes of the files of each kind."""
    found = {}
    for kind, sizes in _SIZES.items():
        files, n_bytes = session.execute(select(func.count(), _sum(sizes.c.size)).select_from(sizes)).one()
        found[kind] = files, int(n_bytes)
    return found


def by_run(session: Session, limit: int) -> list[tuple[Run, dict[str, int]]]:
    """The runs that take the most space, the largest first, with the bytes of each kind."""
    parts = {
        kind: select(each.c.run_id, _sum(each.c.size).label("size")).group_by(each.c.run_id).subquery()
        for kind, each in _SIZES.items()
    }
    sizes = {kind: func.coalesce(part.c.size, 0) for kind, part in parts.items()}
    total: Any = sum(sizes.values())
    found = select(Run, *(size.label(kind) for kind, size in sizes.items()))
    for part in parts.values():
        found = found.outerjoin(part, part.c.run_id == Run.id)
    rows = session.execute(found.order_by(total.desc(), Run.id).limit(limit))
    return [(run, dict(zip(sizes, map(int, values), strict=True))) for run, *values in rows]


def database_bytes(session: Session) -> int:
    """Size of the database."""
    if session.get_bind().dialect.name == "sqlite":
        size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    else:
        size = "SELECT pg_database_size(current_database())"
    return int(session.execute(text(size)).scalar_one())


def count_removed_files(session: Session) -> int:
    """Number of files that clean-up will delete, of a deleted run as one."""
    return session.scalars(select(func.count()).select_from(RemovedFile)).one()


def count_runs(session: Session, group: str | None, others: Sequence[str]) -> int:
    """Number of runs of a group; None: of all but those of the other groups."""
    return session.scalars(select(func.count()).select_from(Run).where(_of(group, others))).one()


def run_ids(
    session: Session, group: str | None, others: Sequence[str], after: str, limit: int
) -> Sequence[str]:
    """The next of these runs, in order."""
    found = select(Run.id).where(_of(group, others), Run.id > after)
    return session.scalars(found.order_by(Run.id).limit(limit)).all()


def _of(group: str | None, others: Sequence[str]) -> ColumnElement[bool]:
    if group is not None:
        return Run.group == group
    return or_(Run.group.is_(None), Run.group.not_in(others))


def _sum(size: ColumnElement[int]) -> Any:
    return func.coalesce(func.sum(size), 0)
