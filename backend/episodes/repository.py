"""Episodes in the database."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.db import Episode, keyset

SORTS: dict[str, InstrumentedAttribute[Any]] = {
    "agent_steps": Episode.agent_steps,
    "recorded_at": Episode.recorded_at,
    "episode_return": Episode.episode_return,
    "length_steps": Episode.length_steps,
}
"""What episodes may be sorted by."""


def observations_file(episode_id: str) -> str:
    """Name of the video of what the network saw, among the run's videos."""
    return f"{episode_id}-observations.mp4"


def get(session: Session, episode_id: str) -> Episode | None:
    """The episode, or none."""
    return session.get(Episode, episode_id)


def page(
    session: Session,
    run_id: str,
    *,
    kind: str | None,
    superseded: bool,
    sort: str,
    descending: bool,
    limit: int,
    cursor: str | None,
) -> tuple[list[Episode], str | None]:
    """One page of a run's episodes and the next page's cursor; superseded ones only when asked for."""
    statement = select(Episode).where(Episode.run_id == run_id)
    if kind is not None:
        statement = statement.where(Episode.kind == kind)
    if not superseded:
        statement = statement.where(Episode.superseded.is_(False))
    return keyset.page(
        session,
        statement,
        by=SORTS[sort],
        row_id=Episode.id,
        descending=descending,
        limit=limit,
        cursor=cursor,
    )
