"""Table `jobs`: small units of work for workers apart from runs, such as rendering a video."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base

VIDEO = "video"
"""Kind of the job that renders an episode's video."""

THUMBNAIL = "thumbnail"
"""Kind of the job that renders an episode's thumbnail."""

ENCODE = "encode"
"""Kind of the job that encodes a video that a script has sent."""

VIDEO_THUMBNAIL = "video_thumbnail"
"""Kind of the job that takes the thumbnail of a video that a script has sent."""

VERIFICATION = "start_set"
"""Kind of the job that verifies a start set by replay."""

GAME = "game"
"""Kind of the job that renders the video of a recorded game."""

EVALUATION = "evaluation"
"""Kind of the job that evaluates a checkpoint on a user's request."""

BRANCH = "branch"
"""Kind of the job that plays continuations of an episode."""

SALIENCY = "saliency"
"""Kind of the job that computes a saliency map."""

AGENT = "agent"
"""Kind of the job that exports the agent of a checkpoint."""

OF_EPISODES = (VIDEO, THUMBNAIL)
"""Kinds of the jobs whose target is an episode."""


class Job(Base):
    """One job, claimed like a run. The `job.py` of its target's resource declares its kind."""

    __tablename__ = "jobs"
    __table_args__ = (UniqueConstraint("kind", "target_id"), Index(None, "claimed_at"))

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    """None for a job that belongs to no run."""
    kind: Mapped[str] = mapped_column(String(20))
    target_id: Mapped[str] = mapped_column(String(26))
    created_at: Mapped[datetime]
    requested_by: Mapped[str | None] = mapped_column(String(26))
    """Id of the user whose request queued it, or of the token whose script did; None for a worker's."""
    state: Mapped[str] = mapped_column(String(20), index=True)
    """`queued`, `running`, `done` or `failed`."""
    tries: Mapped[int] = mapped_column(default=0)
    claimed_at: Mapped[datetime | None]
    """When its latest try began."""
    took_s: Mapped[float] = mapped_column(default=0.0)
    """How long its tries have occupied hosts, up to the latest that has ended."""
    host: Mapped[str | None] = mapped_column(String(200))
    lease_expires_at: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
