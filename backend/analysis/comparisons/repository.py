"""The columns of runs that groups need."""

from collections.abc import Sequence

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from backend.db import Run
from backend.runs.runs.conditions import condition
from backend.runs.runs.filters import Node
from backend.runs.runs.groups import Brief
from backend.runs.runs.repository import BRIEF_COLUMNS

_MAX_ALIKE = 2_000


def briefs(session: Session, node: Node) -> Sequence[Brief]:
    """Every run that matches the filter, latest first, with only the columns of a group, without its
    specification."""
    query = select(*BRIEF_COLUMNS).where(condition(node)).order_by(Run.id.desc())
    return [Brief._make((*row, None)) for row in session.execute(query)]


def alike(session: Session, runs: Sequence[Run]) -> Sequence[Brief]:
    """Every run of an algorithm, environment and group that one of these has, latest first, as `briefs`;
    without archived runs and the demo run."""
    kinds = {(run.algorithm, run.environment, run.group) for run in runs}
    of_kind = [
        and_(
            Run.algorithm == algorithm, Run.environment == environment, Run.group.is_not_distinct_from(group)
        )
        for algorithm, environment, group in sorted(kinds, key=str)
    ]
    query = select(*BRIEF_COLUMNS).where(or_(*of_kind), Run.archived.is_(False), Run.demo.is_(False))
    rows = session.execute(query.order_by(Run.id.desc()).limit(_MAX_ALIKE))
    return [Brief._make((*row, None)) for row in rows]
