"""Runs in the database, with their attempts, logs and lineages: a run, its forks, and theirs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, Text, and_, bindparam, cast, func, insert, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from backend.db import (
    Attempt,
    DeletedRun,
    LogLine,
    Run,
    ScriptProcess,
    Transition,
    folding,
    keyset,
)
from backend.db.engine import caches_of
from backend.db.run import WITH_DELETED
from backend.runs.runs.conditions import condition, expression
from backend.runs.runs.fields import MetricField, resolve
from backend.runs.runs.filters import Node
from backend.runs.runs.groups import COMPUTED, Brief, GroupedRun, Specs
from backend.specs.states import RunState

SORTS: dict[str, InstrumentedAttribute[Any]] = {
    "created_at": Run.created_at,
    "started_at": Run.started_at,
    "ended_at": Run.ended_at,
    "name": Run.name,
    "algorithm": Run.algorithm,
    "environment": Run.environment,
    "state": Run.state,
    "host": Run.host,
    "seed": Run.seed,
    "priority": Run.priority,
    "group": Run.group,
    "project": Run.project,
    "score": Run.score,
    "best_return": Run.best_return,
    "agent_steps": Run.agent_steps,
    "frames": Run.frames,
    "episodes": Run.episodes,
    "wall_time_s": Run.wall_time_s,
    "agent_steps_per_s": Run.agent_steps_per_s,
}
"""Columns that runs can be sorted by, apart from their settings and metrics."""

BRIEF_COLUMNS = [getattr(Run, name) for name in Brief._fields if name != "spec_text"]
"""The columns of a `Brief`."""
_IDS_PER_STATEMENT = 10_000
_READ_AT_ONCE = 100
"""Specifications that are in memory at the same time: one may have more than 50 KiB."""

_ATTEMPTS = select(Attempt).where(Attempt.run_id == bindparam("run_id")).order_by(Attempt.number)
_TRANSITIONS = select(Transition).where(Transition.run_id == bindparam("run_id")).order_by(Transition.id)
_CHILDREN = select(Run).where(Run.parent_id == bindparam("run_id")).order_by(Run.id)


@dataclass(frozen=True)
class TrainingStart:
    """When the training of an attempt started, and from where."""

    run_id: str
    time: datetime
    resumed_from_agent_steps: int


def add(session: Session, run: Run) -> None:
    """Store a new run."""
    session.add(run)
    session.flush()


def get(session: Session, run_id: str, *, for_update: bool = False) -> Run | None:
    """The run, or None. `for_update` locks its row until the end of the transaction: read before you
    write."""
    return session.get(Run, run_id, with_for_update=for_update or None, populate_existing=for_update)


def get_restorable(session: Session, run_id: str) -> Run | None:
    """A run that was deleted as restorable, locked; None if there is none of this id."""
    query = select(Run).where(Run.id == run_id, Run.deleted_at.is_not(None)).with_for_update()
    return session.scalars(query, execution_options=WITH_DELETED).one_or_none()


def deleted_before(session: Session, before: datetime, limit: int) -> Sequence[Run]:
    """Runs that were deleted as restorable before a time, locked; those that another transaction has locked
    are left out."""
    query = select(Run).where(Run.deleted_at < before).order_by(Run.id).limit(limit)
    return session.scalars(query.with_for_update(skip_locked=True), execution_options=WITH_DELETED).all()


def deleted_page(session: Session, limit: int, cursor: str | None) -> tuple[list[Run], str | None, int]:
    """One page of the runs that can be restored, those deleted last first; the cursor of the next page, and
    their number.

    Raises:
        BadCursor: `cursor` does not belong to this list.
    """
    is_deleted = Run.deleted_at.is_not(None)
    rows, next_cursor = keyset.page(
        session,
        select(Run).where(is_deleted).execution_options(**WITH_DELETED),
        by=Run.deleted_at,
        row_id=Run.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )
    count = select(func.count()).select_from(Run).where(is_deleted)
    return rows, next_cursor, session.scalars(count, execution_options=WITH_DELETED).one()


def queue(session: Session) -> list[tuple[str, int]]:
    """Id and priority of every queued run, in the order in which workers claim them."""
    query = select(Run.id, Run.priority).where(Run.state == RunState.QUEUED)
    rows = session.execute(query.order_by(Run.priority.desc(), Run.id))
    return [(run_id, priority) for run_id, priority in rows]


def has_any(session: Session) -> bool:
    """Whether there is a run, one that can be restored included."""
    return session.scalars(select(Run.id).limit(1), execution_options=WITH_DELETED).first() is not None


def deleted_among(session: Session, ids: Sequence[str]) -> set[str]:
    """The ids among these of deleted runs."""
    return set(session.scalars(select(DeletedRun.id).where(DeletedRun.id.in_(ids))))


def delete(session: Session, run: Run) -> None:
    """Delete a run's row and all dependent rows."""
    session.delete(run)
    session.flush()


def bump_revision(session: Session, run_id: str) -> tuple[int, str]:
    """Add one to the revision of a run whose row is not loaded. Returns its new revision and its state."""
    statement = update(Run).where(Run.id == run_id).values(revision=Run.revision + 1)
    revision, state = session.execute(statement.returning(Run.revision, Run.state)).one()
    return int(revision), state


def add_log_lines(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to the logs of runs."""
    session.execute(insert(LogLine), rows)


def wanted_checkpoints(session: Session, ids: Sequence[str]) -> dict[str, datetime]:
    """When a checkpoint was requested, of those of the runs of which one is awaited."""
    wanted = select(Run.id, Run.checkpoint_requested_at).where(Run.checkpoint_requested_at.is_not(None))
    return dict(session.execute(wanted.where(Run.id.in_(ids))).all())


def groups_of(session: Session, ids: Sequence[str]) -> dict[str, str | None]:
    """The groups of those of these runs that exist."""
    return dict(session.execute(select(Run.id, Run.group).where(Run.id.in_(ids))).all())


def attempts(session: Session, run_id: str) -> Sequence[Attempt]:
    """All attempts, oldest first."""
    return session.scalars(_ATTEMPTS, {"run_id": run_id}).all()


def processes(session: Session, run_id: str, *, limit: int = 20) -> Sequence[ScriptProcess]:
    """The last processes of a script that have logged to an external run, oldest first."""
    query = select(ScriptProcess).where(ScriptProcess.run_id == run_id)
    return session.scalars(query.order_by(ScriptProcess.source.desc()).limit(limit)).all()[::-1]


def transitions(session: Session, run_id: str) -> Sequence[Transition]:
    """All state transitions, oldest first."""
    return session.scalars(_TRANSITIONS, {"run_id": run_id}).all()


def page(
    session: Session, node: Node, *, sort: str, descending: bool, limit: int, cursor: str | None
) -> tuple[list[Run], str | None, int]:
    """One page of the matching runs, the cursor of the next page, and the total number of matches.

    Args:
        session: any session.
        node: which runs.
        sort: a key of `SORTS`, or the name of a setting or metric.
        descending: largest first.
        limit: maximum number of rows.
        cursor: the cursor from the previous page.

    Raises:
        BadCursor: `cursor` does not belong to a list sorted like this.
        UnknownField: there is no such field.
    """
    matches = condition(node)
    rows, next_cursor = keyset.page(
        session,
        select(Run).where(matches),
        by=SORTS[sort] if sort in SORTS else _computed(sort),
        row_id=Run.id,
        descending=descending,
        limit=limit,
        cursor=cursor,
    )
    return rows, next_cursor, count(session, node)


def ids(session: Session, node: Node, *, limit: int, after: str = "") -> list[str]:
    """Ids of the matching runs, in order, those after `after`."""
    query = select(Run.id).where(condition(node), Run.id > after)
    return list(session.scalars(query.order_by(Run.id).limit(limit)))


def count(session: Session, node: Node) -> int:
    """Number of matching runs."""
    return session.scalars(select(func.count()).select_from(Run).where(condition(node))).one()


def _computed(name: str) -> keyset.Computed:
    field = resolve(name)
    number = isinstance(field, MetricField) or field.kind in ("number", "any")
    return keyset.Computed(name, expression(field), float if number else str)


def children(session: Session, run_id: str) -> Sequence[Run]:
    """The forks of this run, oldest first."""
    return session.scalars(_CHILDREN, {"run_id": run_id}).all()


def count_by_state(session: Session) -> dict[str, int]:
    """Number of runs in each state, without the demo run."""
    counts = session.execute(select(Run.state, func.count()).where(Run.demo.is_(False)).group_by(Run.state))
    return {**dict.fromkeys(RunState, 0), **dict(counts.all())}


def projects(session: Session) -> list[tuple[str, int]]:
    """Every project in alphabetical order, with the number of its runs that are not archived, apart from the
    demo run."""
    shown = func.count().filter(Run.archived.is_(False))
    query = select(Run.project, shown).where(Run.demo.is_(False)).group_by(Run.project)
    return [(name, n_runs) for name, n_runs in session.execute(query.order_by(Run.project))]


def training_starts(session: Session, run_ids: Sequence[str]) -> Iterator[TrainingStart]:
    """Every start of training of the runs, oldest first. An external run has only one, even if it was lost
    and runs again."""
    attempt = and_(Attempt.run_id == Transition.run_id, Attempt.number == Transition.attempt)
    starts = or_(Transition.before.is_(None), Transition.before == RunState.STARTING)
    query = (
        select(Transition.run_id, Transition.time, func.coalesce(Attempt.resumed_from_agent_steps, 0))
        .join(Attempt, attempt, isouter=True)
        .where(Transition.run_id.in_(run_ids), Transition.after == RunState.RUNNING, starts)
    )
    return (TrainingStart(*row) for row in session.execute(query.order_by(Transition.id)))


def log_page(
    session: Session, run_id: str, search: str | None, *, limit: int, cursor: str | None
) -> tuple[list[LogLine], str | None]:
    """One page of a run's log from its start, and the cursor of the next page."""
    return keyset.page(
        session,
        _log(run_id, search),
        by=LogLine.id,
        row_id=LogLine.id,
        descending=False,
        limit=limit,
        cursor=cursor,
    )


def log_lines_after(
    session: Session, run_id: str, search: str | None, line_id: int, limit: int
) -> list[LogLine]:
    """The lines after a line, oldest first."""
    newer = _log(run_id, search).where(LogLine.id > line_id)
    return list(session.scalars(newer.order_by(LogLine.id).limit(limit)))


def log_lines_before(
    session: Session, run_id: str, search: str | None, line_id: int | None, limit: int
) -> list[LogLine]:
    """The last lines before a line, oldest first; without a `line_id`, the last lines of the log."""
    older = _log(run_id, search)
    if line_id is not None:
        older = older.where(LogLine.id < line_id)
    return list(session.scalars(older.order_by(LogLine.id.desc()).limit(limit)))[::-1]


def _log(run_id: str, search: str | None) -> Select[LogLine]:
    lines = select(LogLine).where(LogLine.run_id == run_id)
    return lines.where(folding.contains(LogLine.message, search)) if search else lines


def lineage_roots(session: Session, runs: Iterable[GroupedRun]) -> dict[str, str]:
    """By run id, the first run of its lineage: itself, or the run that it was forked from, directly or not.

    Deleted runs count while they can be restored. After that, their forks no longer name them: forks that
    start at the same agent steps may share a checkpoint, so they are one lineage.

    Args:
        session: a session.
        runs: runs with `id`, `parent_id` and `forked_at_agent_steps` loaded.
    """
    several = list(runs)
    parents = sorted({run.parent_id for run in several if run.parent_id is not None})
    of_parent: dict[str, str] = {}
    for at in range(0, len(parents), _IDS_PER_STATEMENT):
        of_parent |= _roots_of_parents(session, parents[at : at + _IDS_PER_STATEMENT])
    return {
        run.id: _root(run.id, run.forked_at_agent_steps)
        if run.parent_id is None
        else of_parent.get(run.parent_id, run.parent_id)
        for run in several
    }


def _roots_of_parents(session: Session, ids: list[str]) -> dict[str, str]:
    columns = (Run.id, Run.parent_id, Run.forked_at_agent_steps)
    line = select(Run.id.label("start"), *columns).where(Run.id.in_(ids)).cte("line", recursive=True)
    parent = aliased(Run)
    line = line.union_all(
        select(line.c.start, parent.id, parent.parent_id, parent.forked_at_agent_steps).join(
            line, parent.id == line.c.parent_id
        )
    )
    query = select(line.c.start, line.c.id, line.c.forked_at_agent_steps).where(line.c.parent_id.is_(None))
    return {
        start: _root(first, forked_at)
        for start, first, forked_at in session.execute(query, execution_options=WITH_DELETED)
    }


def _root(run_id: str, forked_at_agent_steps: int | None) -> str:
    """Root of the oldest run of a lineage that exists; it may be a fork itself."""
    return run_id if forked_at_agent_steps is None else f"forked at {forked_at_agent_steps}"


def briefs_of(session: Session, ids: Sequence[str]) -> list[Brief]:
    """The runs with these ids, in this order, without their specifications, those that can be restored
    included; unknown ids are left out."""
    known: dict[str, Brief] = {}
    for at in range(0, len(ids), _IDS_PER_STATEMENT):
        query = select(*BRIEF_COLUMNS).where(Run.id.in_(ids[at : at + _IDS_PER_STATEMENT]))
        rows = session.execute(query, execution_options=WITH_DELETED)
        known |= {row[0]: Brief._make((*row, None)) for row in rows}
    return [known[run_id] for run_id in dict.fromkeys(ids) if run_id in known]


def specs_of(session: Session) -> Specs:
    """Reads the specifications of runs."""
    return Specs(partial(_with_specs, session), caches_of(session)[COMPUTED])


def _with_specs(session: Session, runs: Sequence[Brief]) -> Iterator[Brief]:
    """These runs with their specifications, read in parts."""
    for first in range(0, len(runs), _READ_AT_ONCE):
        part = runs[first : first + _READ_AT_ONCE]
        query = select(Run.id, cast(Run.spec, Text)).where(Run.id.in_([run.id for run in part]))
        rows = session.execute(query, execution_options=WITH_DELETED)
        texts = {run_id: str(text) for run_id, text in rows}
        yield from (run._replace(spec_text=texts.get(run.id)) for run in part)
