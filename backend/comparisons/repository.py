"""What groups need of every run that fits, read without the rest of its row."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session, load_only

from backend.db import Run
from backend.runs.filters import Node
from backend.runs.repository import condition

_COLUMNS = (
    Run.algorithm,
    Run.environment,
    Run.group,
    Run.spec,
    Run.state,
    Run.score,
    Run.best_return,
    Run.agent_steps,
)


def briefs(session: Session, asked: Node) -> Sequence[Run]:
    """Every run that `asked` describes, the newest first, with only what a group is made of."""
    query = select(Run).where(condition(asked)).order_by(Run.id.desc())
    return session.scalars(query.options(load_only(*_COLUMNS, raiseload=True))).all()
