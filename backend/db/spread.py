"""Rows of a run that are spread over its training."""

from typing import Any, TypeVar

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

M = TypeVar("M")


def spread(
    session: Session,
    model: type[M],
    of_run: list[ColumnElement[bool]],
    *,
    n: int,
    min_agent_steps: int = 0,
    max_agent_steps: int | None = None,
) -> list[M]:
    """At most n rows, spread over agent steps: all, or the first of each stretch, in order.

    Stretches start at multiples of their length, a power of two, so that those of a running run stay.

    Args:
        session: any session.
        model: a table with an id that sorts by time, and agent steps.
        of_run: which of its rows.
        n: the most rows.
        min_agent_steps: of the first row.
        max_agent_steps: of the last row; None for any.
    """
    table: Any = model
    chosen = [*of_run, table.agent_steps >= min_agent_steps]
    if max_agent_steps is not None:
        chosen.append(table.agent_steps <= max_agent_steps)
    ends = select(func.count(), func.min(table.agent_steps), func.max(table.agent_steps)).where(*chosen)
    count, first, last = session.execute(ends).one()
    in_order = select(table).order_by(table.agent_steps, table.id)
    if count <= n:
        return list(session.scalars(in_order.where(*chosen)))
    length = 1
    while last // length - first // length >= n:
        length *= 2
    firsts = select(func.min(table.id)).where(*chosen).group_by(table.agent_steps // length)
    return list(session.scalars(in_order.where(table.id.in_(firsts))))
