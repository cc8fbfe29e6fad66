"""What is stored of a run, for retention. Only columns are read: a long run has many thousand episodes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from backend.checkpoints.repository import LATEST_FIRST
from backend.db import Attempt, Checkpoint, Episode, Evaluation, Job, LogLine, Video
from backend.db.clock import database_now
from backend.jobs.repository import ENCODE
from backend.specs.retention import StoredCheckpoint, StoredEpisode


@dataclass(frozen=True)
class EpisodeFiles(StoredEpisode):
    """An episode and its files in the artifact store."""

    replay: str
    replay_bytes: int | None
    video: str | None
    video_bytes: int | None
    rendered_at: datetime
    """When the video was rendered; without one, when the episode was recorded."""


def checkpoints(session: Session, run_id: str) -> list[StoredCheckpoint]:
    """The checkpoints of a run whose files are stored, newest first."""
    highest: Any = func.max(Evaluation.mean_return)
    of_all = (
        select(Evaluation.checkpoint, highest)
        .where(Evaluation.run_id == run_id, Evaluation.mean_return.is_not(None))
        .group_by(Evaluation.checkpoint)
    )
    scores: dict[str | None, float] = dict(session.execute(of_all).all())
    # The engine's second score of its best checkpoint comes later, mostly at another step.
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
        )
        .where(Episode.run_id == run_id, Episode.removed.is_(False))
        .order_by(Episode.agent_steps.desc(), Episode.id.desc())
    )
    return [EpisodeFiles(*row) for row in rows]


def rendering(session: Session, run_id: str) -> set[str]:
    """Ids of the episodes of a run whose videos are requested or being rendered."""
    pending = select(Job.target_id).where(
        Job.run_id == run_id, Job.kind == "video", Job.state.in_(["queued", "running"])
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
    """The videos that a run's script sent before a time, but for those that are being encoded."""
    older = select(Video).where(Video.run_id == run_id, Video.received_at < before)
    waiting = select(Job.target_id).where(
        Job.run_id == run_id, Job.kind == ENCODE, Job.state.in_(["queued", "running"])
    )
    return list(session.scalars(older.where(Video.id.not_in(waiting)).order_by(Video.id)))


def old_lines(session: Session, run_id: str, days: int, *, limit: int) -> Sequence[int]:
    """Ids of a run's oldest log lines, up to the first that is not old."""
    before: datetime = database_now(session) - timedelta(days=days)
    oldest: Any = (
        select(LogLine.id, LogLine.time).where(LogLine.run_id == run_id).order_by(LogLine.id).limit(limit)
    )
    return [line.id for line in session.execute(oldest) if line.time < before]
