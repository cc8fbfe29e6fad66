"""External runs: created here, trained and written elsewhere."""

from datetime import timedelta
from typing import Any, Literal

from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.base import new_run_id
from backend.db.clock import database_now
from backend.errors import Conflict
from backend.principals import Principal
from backend.runs import repository
from backend.specs.external import REFUSALS, parse_external_spec
from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import RunState
from backend.text import UNSTORABLE, unstorable_paths

HEARTBEAT_S = 60.0
"""Time without a request of its script after which an external run is lost."""


def create(session: Session, body: dict[str, Any], principal: Principal) -> Run:
    """Validate a request and store its run, which is `running`.

    Raises:
        InvalidSpec: with one problem per invalid field; nothing is stored.
    """
    if unstorable := unstorable_paths(body):
        raise InvalidSpec([FieldProblem(field=path or "body", message=UNSTORABLE) for path in unstorable])
    spec = parse_external_spec(body)
    now = database_now(session)
    run = Run(
        id=new_run_id(),
        origin=EXTERNAL,
        created_at=now,
        created_by=principal.id,
        token_id=principal.credential.id if principal.credential.kind == "token" else None,
        **{
            name: spec[name]
            for name in ("name", "algorithm", "environment", "seed", "group", "tags", "notes")
        },
        spec=spec,
        queue="",
        memory_estimate_bytes=0,
        state=RunState.RUNNING,
        state_reason="trained elsewhere",
        started_at=now,
        lease_expires_at=now + timedelta(seconds=HEARTBEAT_S),
        attempt=0,
        revision=0,
    )
    repository.add(session, run)
    return run


def trainable_spec(run: Run, action: Literal["fork", "evaluate", "change the settings of"]) -> RunSpec:
    """The specification of a run of Callboard's own.

    Raises:
        Conflict: the run is an external one, which Callboard cannot do this with.
    """
    refuse(run, action)
    return parse_run_spec(run.spec)


def refuse(run: Run, action: str) -> None:
    """Refuse an action that external runs do not have.

    Raises:
        Conflict: the run is an external one.
    """
    if run.origin == EXTERNAL:
        raise Conflict(f"the run is trained elsewhere: {REFUSALS[action]}")
