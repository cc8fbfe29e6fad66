"""Lineages: a run, its forks, and theirs."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from backend.db import Run
from backend.db.run import WITH_DELETED
from backend.runs.groups import GroupedRun

_IDS_PER_STATEMENT = 10_000


def roots(session: Session, runs: Iterable[GroupedRun]) -> dict[str, str]:
    """By run id, the first run of its lineage: itself, or the run that it was forked from, directly or not.

    Deleted runs count while they can be restored. Then their forks no longer name them: those that start at
    the same agent steps may share a checkpoint, so they are one lineage.

    Args:
        session: a session.
        runs: runs with `id`, `parent_id` and `forked_at_agent_steps` loaded.
    """
    several = list(runs)
    parents = sorted({run.parent_id for run in several if run.parent_id is not None})
    of_parent: dict[str, str] = {}
    for at in range(0, len(parents), _IDS_PER_STATEMENT):
        of_parent |= _roots_of(session, parents[at : at + _IDS_PER_STATEMENT])
    return {
        run.id: _root(run.id, run.forked_at_agent_steps)
        if run.parent_id is None
        else of_parent.get(run.parent_id, run.parent_id)
        for run in several
    }


def _roots_of(session: Session, ids: list[str]) -> dict[str, str]:
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
