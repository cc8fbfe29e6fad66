"""Changing a run's settings while it trains."""

from typing import Any

from sqlalchemy.orm import Session

from backend.db import LiveSettings
from backend.live_settings import repository
from backend.runs import service as runs
from backend.specs.run import changed_live, parse_run_spec


def request(session: Session, run_id: str, changes: dict[str, Any], requested_by: str) -> LiveSettings:
    """Check changes against what the run is to train by, and ask for them.

    Raises:
        NotFound: there is no such run.
        InvalidSpec: naming each setting that cannot be changed live, or whose value is not allowed.
    """
    run = runs.get(session, run_id, for_update=True)
    spec = parse_run_spec(run.spec)
    for earlier in repository.pending(session, run_id):
        spec = changed_live(spec, earlier.changes)
    checked = changed_live(spec, changes).config.model_dump(mode="json")
    return repository.request(session, run, {name: checked[name] for name in changes}, requested_by)
