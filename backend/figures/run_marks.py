"""Marks of restarts and setting changes, from the rows of runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backend.db import Attempt, Checkpoint, LiveSettings, Run
from backend.figures.marks import Mark

Places = Mapping[tuple[str, int], float]
"""x of a run's checkpoints and of its start, by run and agent steps."""

XOf = Callable[[Any], float | None]
"""x of a row of a run; None if the row lacks the column."""


def places_of(saved: Sequence[Checkpoint], found: Mapping[str, Run], x_of: XOf) -> Places:
    """Where the runs' checkpoints and starts are."""
    places = {(run_id, 0): 0.0 for run_id in found}
    return places | {(one.run_id, one.agent_steps): float(x_of(one) or 0.0) for one in saved}


def restarts(attempts: Sequence[Attempt], places: Places, names: Mapping[str, str]) -> list[Mark]:
    """Marks where later attempts started."""
    marks = []
    for attempt in attempts:
        x = places.get((attempt.run_id, attempt.resumed_from_agent_steps))
        if attempt.number > 1 and x is not None:
            marks.append(Mark(attempt.run_id, x, f"{names[attempt.run_id]}attempt {attempt.number}"))
    return marks


def setting_changes(
    changes: Sequence[LiveSettings],
    attempts: Sequence[Attempt],
    places: Places,
    names: Mapping[str, str],
    x_of: XOf,
) -> list[Mark]:
    """Marks where the points with new settings start.

    This is before the change took effect if a later attempt resumed from an earlier checkpoint: it had the
    new settings from its start.
    """
    marks = []
    for change in changes:
        later = [
            attempt.resumed_from_agent_steps
            for attempt in attempts
            if attempt.run_id == change.run_id and attempt.claimed_at > change.requested_at
        ]
        start = min([change.agent_steps or 0, *later])
        # A change has no episode count.
        exact = x_of(change)
        x = exact if start == change.agent_steps else places.get((change.run_id, start))
        if x is not None:
            shown = ", ".join(f"{name} = {value}" for name, value in change.changes.items())
            marks.append(Mark(change.run_id, float(x), f"{names[change.run_id]}{shown}"))
    return marks
