"""Videos of external runs in the database."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import Video, keyset
from backend.db.spread import spread as spread_over


def add(session: Session, video: Video) -> None:
    """Store a new video."""
    session.add(video)
    session.flush()


def get(session: Session, video_id: str) -> Video | None:
    """The video, or None."""
    return session.get(Video, video_id)


def page(session: Session, run_id: str, *, limit: int, cursor: str | None) -> tuple[list[Video], str | None]:
    """One page of a run's videos, latest first, and the cursor of the next page."""
    return keyset.page(
        session,
        select(Video).where(Video.run_id == run_id),
        by=Video.agent_steps,
        row_id=Video.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def spread(
    session: Session, run_id: str, *, n: int, min_agent_steps: int, max_agent_steps: int | None
) -> list[Video]:
    """At most n encoded videos of a run, spread over its agent steps; see `backend.db.spread`."""
    return spread_over(
        session,
        Video,
        [Video.run_id == run_id, Video.video.is_not(None)],
        n=n,
        min_agent_steps=min_agent_steps,
        max_agent_steps=max_agent_steps,
    )


def stored_size(session: Session, run_id: str) -> tuple[int, int]:
    """Number and bytes of a run's videos."""
    size = Video.video_bytes + Video.sent_bytes + func.coalesce(Video.thumbnail_bytes, 0)
    n_bytes: Any = func.coalesce(func.sum(size), 0)
    row = session.execute(select(func.count(), n_bytes).where(Video.run_id == run_id)).one()
    return row[0], int(row[1])
