"""Episodes in the database."""

from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.db import Episode, keyset

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
    """At most n episodes of a run, spread over its agent steps: the first of each stretch, in order.

    Stretches start at multiples of their length, a power of two, so that those of a running run stay.
    """
    of_run: list[ColumnElement[bool]] = [
        Episode.run_id == run_id,
        Episode.removed.is_(False),
        Episode.superseded.is_(False),
        Episode.agent_steps >= min_agent_steps,
    ]
    if max_agent_steps is not None:
        of_run.append(Episode.agent_steps <= max_agent_steps)
    first, last = session.execute(
        select(func.min(Episode.agent_steps), func.max(Episode.agent_steps)).where(*of_run)
    ).one()
    if first is None:
        return []
    length = 1
    while last // length - first // length >= n:
        length *= 2
    firsts = select(func.min(Episode.id)).where(*of_run).group_by(Episode.agent_steps // length)
    chosen = select(Episode).where(Episode.id.in_(firsts))
    return list(session.scalars(chosen.order_by(Episode.agent_steps, Episode.id)))
