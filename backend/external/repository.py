"""External runs in the database: what their scripts have sent, and when they are lost."""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import ExternalSource, Run, Series, SeriesChunk
from backend.db.clock import database_now
from backend.metrics import repository as metrics
from backend.metrics.chunks import Array
from backend.runs import repository as runs
from backend.specs.states import RunState


def source(session: Session, run_id: str, name: str) -> ExternalSource | None:
    """A process that writes the locked run; None before its first batch."""
    return session.get(ExternalSource, (run_id, name))


def count_sources(session: Session, run_id: str) -> int:
    """Number of processes that have written a run."""
    query = select(func.count()).select_from(ExternalSource).where(ExternalSource.run_id == run_id)
    return session.scalars(query).one()


def add_source(session: Session, run_id: str, name: str) -> ExternalSource:
    """Add a process that writes the locked run."""
    row = ExternalSource(run_id=run_id, source=name, sequence=0, dropped=0)
    session.add(row)
    return row


def furthest(session: Session, run_id: str, names: Collection[str]) -> dict[str, int]:
    """By metric, the latest agent steps of those of these metrics that have points."""
    latest = (
        select(SeriesChunk.max_agent_steps)
        .where(SeriesChunk.series_id == Series.id, SeriesChunk.superseded.is_(False))
        .order_by(SeriesChunk.first_row.desc())
        .limit(1)
        .correlate(Series)
        .scalar_subquery()
    )
    query = select(Series.metric, latest).where(
        Series.run_id == run_id, Series.metric.in_(names), Series.source == "", Series.n_points > 0
    )
    return dict(session.execute(query).all())


def series_names(session: Session, run_id: str) -> set[str]:
    """The metrics of a run."""
    return set(session.scalars(select(Series.metric).where(Series.run_id == run_id)))


def last_values(session: Session, run_id: str, metric: str, n: int) -> list[Array]:
    """The last chunks of a metric with at least `n` values, if it has as many."""
    found: list[Array] = []
    for row in metrics.list_series(session, [run_id], [metric]):
        chunks = metrics.live_chunks(session, [row.id])[row.id]
        while chunks and sum(map(len, found)) < n:
            last = chunks.pop()
            found.insert(0, metrics.points_of(session, [last], ("value",))[last.id]["value"])
    return found


def keep_alive(session: Session, run: Run, seconds: float) -> None:
    """Postpone the time at which a locked run is lost."""
    run.lease_expires_at = database_now(session) + timedelta(seconds=seconds)


def lose(session: Session, run: Run) -> None:
    """A locked run whose script no longer sends anything: it is lost, or stopped if that was requested."""
    silent = "its script has stopped sending data"
    if run.state == RunState.STOPPING:
        runs.transition(session, run, RunState.STOPPED, f"a stop was requested, and {silent}")
    else:
        runs.transition(session, run, RunState.LOST, silent)
