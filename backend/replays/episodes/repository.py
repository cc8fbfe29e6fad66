"""Episodes in the database."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.db import Episode, keyset
from backend.db.spread import spread as spread_over

SORTS: dict[str, InstrumentedAttribute[Any]] = {
    "agent_steps": Episode.agent_steps,
    "recorded_at": Episode.recorded_at,
    "episode_return": Episode.episode_return,
    "length_steps": Episode.length_steps,
}
"""Columns that episodes can be sorted by."""


def get(session: Session, episode_id: str) -> Episode | None:
    """The episode; None if there is none, or it is removed."""
    episode = session.get(Episode, episode_id)
    return None if episode is None or episode.removed else episode


def page(
    session: Session,
    run_id: str,
    *,
    kind: str | None,
    superseded: bool,
    max_agent_steps: int | None = None,
    sort: str,
    descending: bool,
    limit: int,
    cursor: str | None,
) -> tuple[list[Episode], str | None]:
    """One page of a run's episodes, and the cursor of the next page; superseded ones only on request."""
    statement = select(Episode).where(Episode.run_id == run_id, Episode.removed.is_(False))
    if kind is not None:
        statement = statement.where(Episode.kind == kind)
    if not superseded:
        statement = statement.where(Episode.superseded.is_(False))
    if max_agent_steps is not None:
        statement = statement.where(Episode.agent_steps <= max_agent_steps)
    return keyset.page(
        session,
        statement,
        by=SORTS[sort],
        row_id=Episode.id,
        descending=descending,
        limit=limit,
        cursor=cursor,
    )


def spread(
    session: Session, run_id: str, *, n: int, min_agent_steps: int, max_agent_steps: int | None
) -> list[Episode]:
    """At most n episodes of a run, spread over its agent steps; see `backend.db.spread`."""
    of_run = [Episode.run_id == run_id, Episode.removed.is_(False), Episode.superseded.is_(False)]
    return spread_over(
        session,
        Episode,
        of_run,
        n=n,
        min_agent_steps=min_agent_steps,
        max_agent_steps=max_agent_steps,
    )
