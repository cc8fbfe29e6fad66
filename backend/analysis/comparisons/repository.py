"""The columns of runs that groups need."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Run
from backend.runs.runs.conditions import condition
from backend.runs.runs.filters import Node
from backend.runs.runs.groups import Brief

_COLUMNS = [getattr(Run, name) for name in Brief._fields if name != "spec_text"]


def briefs(session: Session, node: Node) -> Sequence[Brief]:
    """Every run that matches the filter, latest first, with only the columns of a group, without its
    specification."""
    query = select(*_COLUMNS).where(condition(node)).order_by(Run.id.desc())
    return [Brief._make((*row, None)) for row in session.execute(query)]
