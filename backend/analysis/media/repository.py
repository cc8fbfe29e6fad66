"""Histograms, images and tables in the database."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session, undefer

from backend.db import Media

_IDS_PER_STATEMENT = 500


class Place(NamedTuple):
    """Where an item is on the axis."""

    id: str
    agent_steps: int


def size(session: Session, run_id: str) -> tuple[int, int]:
    """Number and bytes of a run's items, superseded ones among them."""
    n_bytes: Any = func.coalesce(func.sum(Media.size_bytes), 0)
    row = session.execute(select(func.count(), n_bytes).where(Media.run_id == run_id)).one()
    return row[0], int(row[1])


def add(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Store new items."""
    session.execute(insert(Media), rows)


def cut(session: Session, run_id: str, after_agent_steps: int) -> None:
    """Mark the items of a run after these agent steps as superseded."""
    later = update(Media).where(
        Media.run_id == run_id, Media.superseded.is_(False), Media.agent_steps > after_agent_steps
    )
    session.execute(later.values(superseded=True))


def get(session: Session, media_id: str) -> Media | None:
    """An item with its bins, or None."""
    return session.get(Media, media_id, options=[undefer(Media.bins)])


def listed(session: Session, run_id: str) -> Sequence[Any]:
    """Kind, metric, id and agent steps of each item of a run that is not superseded, in this order."""
    query = select(Media.kind, Media.metric, Media.id, Media.agent_steps).where(
        Media.run_id == run_id, Media.superseded.is_(False)
    )
    return session.execute(query.order_by(Media.kind, Media.metric, Media.agent_steps, Media.id)).all()


def items(session: Session, run_id: str) -> Sequence[Media]:
    """The items of a run that are not superseded, without bins, in the order of `listed`."""
    query = select(Media).where(Media.run_id == run_id, Media.superseded.is_(False))
    return session.scalars(query.order_by(Media.kind, Media.metric, Media.agent_steps, Media.id)).all()


def places(session: Session, run_id: str, metric: str) -> list[Place]:
    """The histograms of a metric that are not superseded, in the order of agent steps."""
    query = select(Media.id, Media.agent_steps).where(
        Media.run_id == run_id,
        Media.kind == "histogram",
        Media.metric == metric,
        Media.superseded.is_(False),
    )
    return [Place(*row) for row in session.execute(query.order_by(Media.agent_steps, Media.id))]


def bins_of(session: Session, ids: Sequence[str]) -> dict[str, bytes]:
    """By id, the stored bins of histograms."""
    stored: dict[str, bytes] = {}
    for first in range(0, len(ids), _IDS_PER_STATEMENT):
        query = select(Media.id, Media.bins).where(Media.id.in_(ids[first : first + _IDS_PER_STATEMENT]))
        stored |= {media_id: bins or b"" for media_id, bins in session.execute(query)}
    return stored
