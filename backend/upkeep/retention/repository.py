"""Retention settings, what is stored of runs, and sizes, in the database.

Of checkpoints, episodes and log lines only columns are read: a long run has many thousand episodes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Subquery, and_, delete, func, or_, select, text, union_all, update
from sqlalchemy.orm import Session, defer

from backend.db import (
    Attempt,
    AuditEntry,
    Branch,
    Checkpoint,
    Episode,
    Evaluation,
    Job,
    LogLine,
    Media,
    RemovedFile,
    RetentionSettings,
    Run,
    StoredAgent,
    StoredSaliency,
    Video,
)
from backend.db.job import AGENT, BRANCH, ENCODE, OF_EPISODES, SALIENCY, VIDEO_THUMBNAIL
from backend.runs.checkpoints.repository import LATEST_FIRST
from backend.upkeep.retention.policy import StoredCheckpoint, StoredEpisode

_IDS_PER_STATEMENT = 2_000
_OF_UPLOADED = (ENCODE, VIDEO_THUMBNAIL)
"""Kinds of the jobs whose target is a video that a script has uploaded."""


@dataclass(frozen=True)
class EpisodeFiles(StoredEpisode):
    """An episode and its files in the artifact store."""

    replay: str
    replay_bytes: int | None
    video: str | None
    video_bytes: int | None
    rendered_at: datetime
    """When the video was rendered; without one, when the episode was recorded."""
    thumbnail_bytes: int | None
    """Size of the thumbnail; None without one."""


def settings_by_scope(session: Session) -> dict[str, dict[str, Any]]:
    """All stored settings."""
    return {row.scope: row.settings for row in session.scalars(select(RetentionSettings))}


def store_settings(session: Session, row: RetentionSettings) -> None:
    """Store settings in place of those of the same scope."""
    session.merge(row)
    session.flush()


def delete_settings(session: Session, scope: str) -> bool:
    """Delete the settings of a scope. False if it had none."""
    row = session.get(RetentionSettings, scope)
    if row is None:
        return False
    session.delete(row)
    session.flush()
    return True


def runs(session: Session, run_ids: Sequence[str]) -> Sequence[Any]:
    """Id, group and state of those of these runs that exist."""
    return session.execute(select(Run.id, Run.group, Run.state).where(Run.id.in_(run_ids))).all()


def next_run_ids(session: Session, after: str, limit: int) -> Sequence[str]:
    """Ids of the next runs, in order."""
    return session.scalars(select(Run.id).where(Run.id > after).order_by(Run.id).limit(limit)).all()


def mark_checkpoints_removed(session: Session, ids: Collection[str]) -> None:
    """Mark checkpoints as removed."""
    session.execute(update(Checkpoint).where(Checkpoint.id.in_(ids)).values(removed=True))


def update_episodes(session: Session, episodes: Sequence[EpisodeFiles], values: Mapping[str, Any]) -> None:
    """Set columns of episodes."""
    for at in range(0, len(episodes), _IDS_PER_STATEMENT):
        ids = [episode.id for episode in episodes[at : at + _IDS_PER_STATEMENT]]
        session.execute(update(Episode).where(Episode.id.in_(ids)).values(**values))


def delete_uploaded_video(session: Session, video: Video) -> None:
    """Delete the row of a video that a script has uploaded, and its jobs."""
    session.execute(delete(Job).where(Job.kind.in_(_OF_UPLOADED), Job.target_id == video.id))
    session.delete(video)


def delete_lines(session: Session, ids: Sequence[int]) -> None:
    """Delete log lines."""
    session.execute(delete(LogLine).where(LogLine.id.in_(ids)))


def delete_audit_entries(session: Session, before: datetime, limit: int) -> int:
    """Delete the oldest entries of the audit trail from before a time; return their number."""
    old = select(AuditEntry.id).where(AuditEntry.time < before).order_by(AuditEntry.id).limit(limit)
    ids = session.scalars(old).all()
    session.execute(delete(AuditEntry).where(AuditEntry.id.in_(ids)))
    return len(ids)


def count_audit_entries(session: Session, before: datetime) -> int:
    """Number of entries of the audit trail from before a time."""
    return session.scalars(select(func.count()).select_from(AuditEntry).where(AuditEntry.time < before)).one()


def set_log_bytes(session: Session, run_id: str, attempt: int, log_bytes: int) -> None:
    """Record the size of a compressed event log, or 0 for a removed one."""
    session.execute(
        update(Attempt).where(Attempt.run_id == run_id, Attempt.number == attempt).values(log_bytes=log_bytes)
    )


def checkpoints(session: Session, run_id: str) -> list[StoredCheckpoint]:
    """The checkpoints of a run whose files are stored, newest first."""
    highest: Any = func.max(Evaluation.mean_return)
    of_all = (
        select(Evaluation.checkpoint, highest)
        .where(Evaluation.run_id == run_id, Evaluation.mean_return.is_not(None))
        .group_by(Evaluation.checkpoint)
    )
    scores: dict[str | None, float] = dict(session.execute(of_all).all())
    # The engine scores its best checkpoint again, mostly at another step. The first score counts: it is the
    # last of these rows.
    of_engine = (
        select(Evaluation.checkpoint, Evaluation.mean_return)
        .join(
            Checkpoint,
            (Checkpoint.run_id == Evaluation.run_id) & (Checkpoint.file == Evaluation.checkpoint),
        )
        .where(Evaluation.run_id == run_id, Evaluation.attempt.is_not(None))
        .where(Evaluation.superseded.is_(False), Evaluation.agent_steps == Checkpoint.agent_steps)
        .order_by(Evaluation.id.desc())
    )
    engine_scores = dict(session.execute(of_engine).all())
    rows = session.execute(
        select(
            Checkpoint.id,
            Checkpoint.file,
            Checkpoint.agent_steps,
            Checkpoint.size_bytes,
            Checkpoint.superseded,
            Checkpoint.score,
        )
        .where(Checkpoint.run_id == run_id, Checkpoint.removed.is_(False))
        .order_by(*LATEST_FIRST)
    )
    return [
        StoredCheckpoint(
            row.id,
            row.file,
            row.agent_steps,
            row.size_bytes,
            row.superseded,
            scores.get(row.file),
            row.score,
            engine_scores.get(row.file),
        )
        for row in rows
    ]


def episodes(session: Session, run_id: str) -> list[EpisodeFiles]:
    """The episodes of a run that are not removed, newest first."""
    rendered_at: Any = func.coalesce(Episode.video_rendered_at, Episode.recorded_at)
    rows = session.execute(
        select(
            Episode.id,
            Episode.kind,
            Episode.agent_steps,
            Episode.episode_return,
            Episode.superseded,
            Episode.replay,
            Episode.replay_bytes,
            Episode.video,
            Episode.video_bytes,
            rendered_at,
            Episode.thumbnail_bytes,
        )
        .where(Episode.run_id == run_id, Episode.removed.is_(False))
        .order_by(Episode.agent_steps.desc(), Episode.id.desc())
    )
    return [EpisodeFiles(*row) for row in rows]


def awaited_episodes(session: Session, run_id: str) -> set[str]:
    """Ids of the episodes of a run that jobs need: for videos, thumbnails, branches and saliency maps."""
    is_pending = Job.state.in_(["queued", "running"])
    pending = union_all(
        select(Job.target_id).where(Job.run_id == run_id, Job.kind.in_(OF_EPISODES), is_pending),
        *(
            select(table.episode_id)
            .join(Job, and_(Job.kind == kind, Job.target_id == table.id))
            .where(table.run_id == run_id, is_pending)
            for table, kind in ((Branch, BRANCH), (StoredSaliency, SALIENCY))
        ),
    )
    return set(session.scalars(pending))


def event_logs(session: Session, run_ids: Collection[str]) -> Sequence[Attempt]:
    """The attempts at these runs that have ended, and whose event logs are not removed."""
    return session.scalars(
        select(Attempt)
        .where(Attempt.run_id.in_(run_ids), Attempt.ended_at.is_not(None))
        .where(Attempt.log_bytes.is_(None) | (Attempt.log_bytes > 0))
        .options(defer(Attempt.provenance))
        .order_by(Attempt.run_id, Attempt.number)
    ).all()


def uploaded_videos(session: Session, run_id: str, before: datetime) -> list[Video]:
    """The videos that a run's script sent before a time, but for those that a worker works on."""
    older = select(Video).where(Video.run_id == run_id, Video.received_at < before)
    waiting = select(Job.target_id).where(
        Job.run_id == run_id, Job.kind.in_(_OF_UPLOADED), Job.state.in_(["queued", "running"])
    )
    return list(session.scalars(older.where(Video.id.not_in(waiting)).order_by(Video.id)))


def old_lines(session: Session, run_id: str, before: datetime, *, limit: int) -> Sequence[int]:
    """Ids of those of a run's `limit` oldest log lines that are from before a time."""
    oldest: Any = (
        select(LogLine.id, LogLine.time).where(LogLine.run_id == run_id).order_by(LogLine.id).limit(limit)
    )
    return [line.id for line in session.execute(oldest) if line.time < before]


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
        (Episode, func.coalesce(Episode.thumbnail_bytes, 0), Episode.thumbnail_bytes.is_not(None)),
        (Video, Video.video_bytes + Video.sent_bytes, Video.video.is_not(None) | Video.sent.is_not(None)),
        (Video, func.coalesce(Video.thumbnail_bytes, 0), Video.thumbnail_bytes.is_not(None)),
        (StoredAgent, func.coalesce(StoredAgent.n_bytes, 0), StoredAgent.n_bytes.is_not(None)),
    ),
    "media": _sizes((Media, Media.size_bytes.expression, Media.file.is_not(None))),
    "event_logs": _sizes((Attempt, _LOG_BYTES, _LOG_BYTES > 0)),
}
"""By kind, the run and the size of each file."""


def by_kind(session: Session) -> dict[str, tuple[int, int]]:
    """Number and size in bytes of the files of each kind."""
    totals = {}
    for kind, sizes in _SIZES.items():
        files, n_bytes = session.execute(select(func.count(), _sum(sizes.c.size)).select_from(sizes)).one()
        totals[kind] = files, int(n_bytes)
    return totals


def by_run(session: Session, limit: int) -> list[tuple[Run, dict[str, int]]]:
    """The runs that take the most space, the largest first, with the bytes of each kind."""
    parts = {
        kind: select(source.c.run_id, _sum(source.c.size).label("size")).group_by(source.c.run_id).subquery()
        for kind, source in _SIZES.items()
    }
    sizes = {kind: func.coalesce(part.c.size, 0) for kind, part in parts.items()}
    total: Any = sum(sizes.values())
    query = select(Run, *(size.label(kind) for kind, size in sizes.items()))
    for part in parts.values():
        query = query.outerjoin(part, part.c.run_id == Run.id)
    rows = session.execute(query.order_by(total.desc(), Run.id).limit(limit))
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


def run_ids_of(
    session: Session, group: str | None, others: Sequence[str], after: str, limit: int
) -> Sequence[str]:
    """The ids of the next runs of the group after `after`, as for `count_runs`."""
    query = select(Run.id).where(_of(group, others), Run.id > after)
    return session.scalars(query.order_by(Run.id).limit(limit)).all()


def _of(group: str | None, others: Sequence[str]) -> ColumnElement[bool]:
    if group is not None:
        return Run.group == group
    return or_(Run.group.is_(None), Run.group.not_in(others))


def _sum(size: ColumnElement[int]) -> Any:
    return func.coalesce(func.sum(size), 0)


def awaited_checkpoints(session: Session, run_id: str) -> set[str]:
    """File names of a run's checkpoints whose agents are not exported yet."""
    statement = (
        select(StoredAgent.checkpoint)
        .join(Job, (Job.kind == AGENT) & (Job.target_id == StoredAgent.id))
        .where(StoredAgent.run_id == run_id, Job.state.in_(("queued", "running")))
    )
    return set(session.scalars(statement))
