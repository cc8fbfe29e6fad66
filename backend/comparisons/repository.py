"""The columns of runs that groups need."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Text, cast, select
from sqlalchemy.orm import Session

from backend.db import Run
from backend.runs.conditions import condition
from backend.runs.filters import Node
from backend.runs.groups import Brief

_COLUMNS = [getattr(Run, name) for name in Brief._fields if name != "spec_text"]
_READ_AT_ONCE = 100
"""Specifications that are in memory at the same time: one may have more than 50 KiB."""


def briefs(session: Session, node: Node) -> Sequence[Brief]:
    """Every run that matches the filter, latest first, with only the columns of a group, without its
    specification."""
    query = select(*_COLUMNS).where(condition(node)).order_by(Run.id.desc())
    return [Brief._make((*row, None)) for row in session.execute(query)]


def with_specs(session: Session, runs: Sequence[Brief]) -> Iterator[Brief]:
    """These runs with their specifications, read in parts."""
    for first in range(0, len(runs), _READ_AT_ONCE):
        part = runs[first : first + _READ_AT_ONCE]
        query = select(Run.id, cast(Run.spec, Text)).where(Run.id.in_([run.id for run in part]))
        texts = {run_id: str(text) for run_id, text in session.execute(query)}
        yield from (run._replace(spec_text=texts[run.id]) for run in part)
