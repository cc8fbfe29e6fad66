"""The order of the queue: the highest priority first, then the oldest run.

Priorities are the whole order, so a run is moved by changing as few of them as possible: its own, and those
of runs ahead of it that would otherwise follow it.
"""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from backend.db import Run
from backend.platform.errors import Conflict, Invalid
from backend.runs.runs import actions, repository, service
from backend.specs.run_fields import MAX_PRIORITY, MIN_PRIORITY
from backend.specs.states import RunState

Place = tuple[str, int]
"""Id and priority of a queued run."""


def move(session: Session, run_id: str, after: str | None) -> Run:
    """Move a queued run directly after another one, or to the front of the queue.

    Args:
        session: a writing session.
        run_id: the run.
        after: id of a queued run; None: the front.

    Raises:
        NotFound: there is no such run.
        Conflict: it is not queued, or a priority would exceed the highest one.
        Invalid: `after` is not another queued run.
    """
    run = service.get(session, run_id, for_update=True)
    if run.state != RunState.QUEUED:
        raise Conflict(f"the run is {run.state}: only a queued run has a place in the queue")
    order = repository.queue(session)
    if after is not None and (after == run_id or after not in dict(order)):
        raise Invalid.field("after", f"run {after} is not another queued run")
    changes = plan_move(order, run_id, after)
    if max(changes.values(), default=0) > MAX_PRIORITY:
        raise Conflict(
            f"the runs ahead have the highest priority, {MAX_PRIORITY}: lower the priority of a run first"
        )
    for changed in sorted(changes):
        actions.change(session, changed, {"priority": changes[changed]})
    return run


def plan_move(order: Sequence[Place], run_id: str, after: str | None) -> dict[str, int]:
    """The priorities to change, so that a run directly follows another one.

    Args:
        order: the queue, this run included.
        run_id: the run.
        after: id of another run of the queue; None: the front.
    """
    own = dict(order)[run_id]
    others = [place for place in order if place[0] != run_id]
    at = 0 if after is None else [name for name, _ in others].index(after) + 1
    ahead, behind = others[:at], others[at : at + 1]
    low = max((_before(run_id, place) for place in behind), default=MIN_PRIORITY)
    high = min((_behind(run_id, place) for place in ahead[-1:]), default=max(MAX_PRIORITY, low))
    priority = max(low, min(own, high))
    changes = {run_id: priority} if priority != own else {}
    last = (run_id, priority)
    for name, held in reversed(ahead):
        needed = _before(name, last)
        if held >= needed:
            break
        changes[name] = needed
        last = (name, needed)
    return changes


def _before(run_id: str, place: Place) -> int:
    """The lowest priority by which a run is ahead of this place; ids sort by creation time."""
    other, priority = place
    return priority if run_id < other else priority + 1


def _behind(run_id: str, place: Place) -> int:
    """The highest priority by which a run is behind this place."""
    other, priority = place
    return priority if run_id > other else priority - 1
