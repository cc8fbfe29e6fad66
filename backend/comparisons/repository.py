"""The columns of runs that groups need."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session, load_only

from backend.db import Run
from backend.runs.conditions import condition
from backend.runs.filters import Node

_COLUMNS = (
    Run.origin,
    Run.algorithm,
    Run.environment,
    Run.group,
    Run.seed,
    Run.spec,
    Run.state,
    Run.host,
    Run.queue,
    Run.score,
    Run.best_return,
    Run.agent_steps,
    Run.parent_id,
    Run.forked_at_agent_steps,
)


def briefs(session: Session, node: Node) -> Sequence[Run]:
    """Every run that matches the filter, latest first, with only the columns of a group."""
    query = select(Run).where(condition(node)).order_by(Run.id.desc())
    return session.scalars(query.options(load_only(*_COLUMNS, raiseload=True))).all()
