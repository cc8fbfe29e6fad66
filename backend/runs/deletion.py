"""Deletion of runs that can be undone for a while: they are hidden until `repository.purge` deletes them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.changes import record_run_change
from backend.db.clock import database_now
from backend.db.run import WITH_DELETED
from backend.runs import repository
from backend.specs.states import ENDED, RunState


def set_aside(session: Session, run: Run) -> None:
    """Delete a run without a lease, so that it can be restored until `repository.purge`.

    A waiting run is stopped: no worker may claim it meanwhile.
    """
    if run.state not in ENDED:
        repository.transition(session, run, RunState.STOPPED, "deleted")
    run.deleted_at = database_now(session)
    record_run_change(session, run.id, run.revision + 1, "deleted")
    session.flush()


def restore(session: Session, run_id: str) -> Run | None:
    """Bring back a run that was set aside; None if there is none of this id."""
    query = select(Run).where(Run.id == run_id, Run.deleted_at.is_not(None)).with_for_update()
    run = session.scalars(query, execution_options=WITH_DELETED).one_or_none()
    if run is not None:
        run.deleted_at = None
        repository.touch(session, run)
    return run
