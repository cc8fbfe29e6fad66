"""Changing a run's settings while it trains."""

from typing import Any

from sqlalchemy.orm import Session

from backend.db import LiveSettings, Run
from backend.hosts import repository as hosts
from backend.live_settings import repository
from backend.runs import service as runs
from backend.specs.run import FieldProblem, InvalidSpec, RunSpec, changed_live, parse_run_spec
from backend.specs.states import LEASED


def request(session: Session, run_id: str, changes: dict[str, Any], requested_by: str) -> LiveSettings:
    """Check changes against what the run is to train by, and ask for them.

    Raises:
        NotFound: there is no such run.
        InvalidSpec: naming each setting that cannot be changed live, whose value is not allowed, or for
            which the run's host has no memory.
    """
    run = runs.get(session, run_id, for_update=True)
    spec = parse_run_spec(run.spec)
    for earlier in repository.pending(session, run_id):
        spec = changed_live(spec, earlier.changes)
    changed = changed_live(spec, changes)
    _check_memory(session, run, spec, changed, changes)
    checked = changed.config.model_dump(mode="json")
    return repository.request(session, run, {name: checked[name] for name in changes}, requested_by)


def _check_memory(
    session: Session, run: Run, spec: RunSpec, changed: RunSpec, changes: dict[str, Any]
) -> None:
    """Refuse what the host that trains the run cannot hold, as a claim would."""
    more = changed.memory_estimate_bytes - spec.memory_estimate_bytes
    host = hosts.get(session, run.host) if run.host is not None and run.state in LEASED else None
    if host is None or more <= 0:
        return
    free = host.memory_bytes - int(host.load.get("memory_used_bytes", 0))
    if more > free:
        message = f"takes {more / 2**30:.1f} GiB more, and {host.id} has {free / 2**30:.1f} GiB left"
        at_fault = [
            name
            for name, value in changes.items()
            if changed_live(spec, {name: value}).memory_estimate_bytes > spec.memory_estimate_bytes
        ]
        raise InvalidSpec([FieldProblem(field=f"config.{name}", message=message) for name in at_fault])
