"""Changes to a run's settings during training."""

from typing import Any

from sqlalchemy.orm import Session

from backend.db import LiveSettings, Run
from backend.errors import Conflict
from backend.hosts import repository as hosts
from backend.live_settings import repository
from backend.runs import external
from backend.runs import service as runs
from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.run import RunSpec, changed_live
from backend.specs.states import ENDED, LEASED


def request(session: Session, run_id: str, changes: dict[str, Any], requested_by: str) -> LiveSettings:
    """Validate changes against the current and the pending settings, and request them.

    Raises:
        NotFound: there is no such run.
        Conflict: it is an external run, or has ended: its settings are those that it was trained with.
        InvalidSpec: with one problem per setting that cannot be changed live, whose value is invalid, or that
            needs more memory than the run's host has.
    """
    run = runs.get(session, run_id, for_update=True)
    spec = external.trainable_spec(run, "change the settings of")
    if run.state in ENDED:
        raise Conflict(
            f"the run is {run.state}: settings change only before the end; fork it to train with others"
        )
    for earlier in repository.pending(session, run_id):
        spec = changed_live(spec, earlier.changes)
    changed = changed_live(spec, changes)
    _check_memory(session, run, spec, changed, changes)
    checked = changed.config.model_dump(mode="json")
    return repository.request(session, run, {name: checked[name] for name in changes}, requested_by)


def _check_memory(
    session: Session, run: Run, spec: RunSpec, changed: RunSpec, changes: dict[str, Any]
) -> None:
    """Reject changes that the host of the run has no memory for, as a claim would."""
    more = changed.memory_estimate_bytes - spec.memory_estimate_bytes
    host = hosts.get(session, run.host) if run.host is not None and run.state in LEASED else None
    if host is None or more <= 0:
        return
    free = host.memory_bytes - int(host.load.get("memory_used_bytes", 0))
    if more > free:
        message = (
            f"requires {more / 2**30:.1f} GiB more memory, and {host.id} has {free / 2**30:.1f} GiB available"
        )
        at_fault = [
            name
            for name, value in changes.items()
            if changed_live(spec, {name: value}).memory_estimate_bytes > spec.memory_estimate_bytes
        ]
        raise InvalidSpec([FieldProblem(field=f"config.{name}", message=message) for name in at_fault])
