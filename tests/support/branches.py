"""Branches as if a worker had played them."""

from typing import Any

from sqlalchemy import Engine

from backend.db.engine import writing
from backend.replays.branches import service
from backend.specs.branches import BranchOutcome, Continuation


def continuation(rewards: list[float], **changes: Any) -> Continuation:
    """One that the horizon has cut off, in a state worth 2."""
    columns: dict[str, Any] = {"end": "horizon", "n_valued": len(rewards), "last_value": 2.0}
    return Continuation(rewards=rewards, **(columns | changes))


def mark_played(engine: Engine, branch_id: str, *continuations: Continuation) -> None:
    """Record what a worker reports, by an agent that expected 1.5."""
    outcome = BranchOutcome(value=1.5, policy=[0.25, 0.75], continuations=list(continuations))
    with writing(engine) as session:
        service.record(session, branch_id, outcome)
