"""What the scripts of external runs have sent, in the database."""

from collections.abc import Collection, Mapping

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from backend.db import AlertSignal, Checkpoint, ExternalSource, ScriptProcess, Series, SeriesChunk

_NAMES_PER_STATEMENT = 500


def source(session: Session, run_id: str, name: str) -> ExternalSource | None:
    """A process that writes the run; None before its first batch."""
    return session.get(ExternalSource, (run_id, name))


def count_sources(session: Session, run_id: str) -> int:
    """Number of processes that have written a run."""
    query = select(func.count()).select_from(ExternalSource).where(ExternalSource.run_id == run_id)
    return session.scalars(query).one()


def count_signals(session: Session, run_id: str) -> int:
    """Number of alerts of a run's script, and of its changes of state, that no worker has raised yet."""
    query = select(func.count()).select_from(AlertSignal).where(AlertSignal.subject_id == run_id)
    return session.scalars(query).one()


def add_source(session: Session, run_id: str, name: str) -> ExternalSource:
    """Add a process that writes the locked run."""
    row = ExternalSource(run_id=run_id, source=name, sequence=0, dropped=0)
    session.add(row)
    return row


def process(session: Session, run_id: str, source: str) -> ScriptProcess | None:
    """Where a process that writes the run came from; None before it has reported anything of that."""
    return session.get(ScriptProcess, (run_id, source))


def add_process(session: Session, run_id: str, source: str, most: int) -> ScriptProcess:
    """Add a process that writes the locked run, in the place of the oldest one if it has the maximum."""
    of_run = select(ScriptProcess.source).where(ScriptProcess.run_id == run_id)
    surplus = session.scalars(of_run.order_by(ScriptProcess.source.desc()).offset(most - 1)).all()
    session.execute(
        delete(ScriptProcess).where(ScriptProcess.run_id == run_id, ScriptProcess.source.in_(surplus))
    )
    row = ScriptProcess(run_id=run_id, source=source, provenance={}, diff="", output="")
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


def supersede_checkpoints(session: Session, run_id: str, after_agent_steps: int) -> None:
    """Set aside the checkpoints of a locked run after these agent steps."""
    session.execute(
        update(Checkpoint)
        .where(Checkpoint.run_id == run_id, Checkpoint.agent_steps > after_agent_steps)
        .values(superseded=True)
    )


def step_units(session: Session, run_id: str) -> dict[str, str]:
    """What the steps of each metric of a run count."""
    query = select(Series.metric, Series.step_unit).where(Series.run_id == run_id, Series.source == "")
    return dict(session.execute(query).all())


def set_step_units(session: Session, run_id: str, units: Mapping[str, str]) -> None:
    """Change what the steps of some metrics count."""
    for unit in set(units.values()):
        names = [name for name, metric_unit in units.items() if metric_unit == unit]
        for first in range(0, len(names), _NAMES_PER_STATEMENT):
            is_in_batch = Series.metric.in_(names[first : first + _NAMES_PER_STATEMENT])
            session.execute(update(Series).where(Series.run_id == run_id, is_in_batch).values(step_unit=unit))


def largest_value(session: Session, run_id: str, metric: str) -> float | None:
    """The largest finite value of a metric."""
    query = select(Series.max_value).where(Series.run_id == run_id, Series.metric == metric)
    return session.scalar(query.where(Series.source == ""))
