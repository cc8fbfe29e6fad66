"""Where on an axis what happened to runs is marked: restarts, changes of settings, notes and symptoms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from backend.analysis.symptoms.rules import Finding, Rule
from backend.db import Attempt, Checkpoint, LiveSettings, Run, StepNote
from backend.drawing.catalogue import X_AXES
from backend.drawing.marks import Mark
from backend.drawing.theme import plain_text

Places = Mapping[tuple[str, int], float]
"""x of a run's checkpoints and of its start, by run and agent steps."""

XOf = Callable[[Any], float | None]
"""x of a row of a run; None if the row lacks the column."""


def places_of(saved: Sequence[Checkpoint], runs: Mapping[str, Run], x_of: XOf) -> Places:
    """Where the runs' checkpoints and starts are."""
    places = {(run_id, 0): 0.0 for run_id in runs}
    return places | {
        (checkpoint.run_id, checkpoint.agent_steps): float(x_of(checkpoint) or 0.0) for checkpoint in saved
    }


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


def step_notes(
    notes: Sequence[StepNote],
    runs: Mapping[str, Run],
    saved: Sequence[Checkpoint],
    names: Mapping[str, str],
    x_of: XOf,
) -> list[Mark]:
    """Marks of notes, which are at agent steps: on another axis exact at checkpoints, else interpolated."""
    saved_of = {
        run_id: list(rows) for run_id, rows in groupby(saved, key=lambda checkpoint: checkpoint.run_id)
    }
    marks = []
    for note in notes:
        run = runs[note.run_id]
        x = x_of(_counters_at(note.agent_steps, run, saved_of.get(run.id, [])))
        unit = X_AXES[run.step_unit].unit
        text = plain_text(" ".join(note.text.split()))
        if x is not None:
            label = f"{names[run.id]}note at {note.agent_steps:,} {unit}: {text}"
            marks.append(Mark(run.id, float(x), label))
    return marks


def symptoms(
    observed: Sequence[tuple[Rule, Finding]], run: Run, saved: Sequence[Checkpoint], x_of: XOf
) -> list[Mark]:
    """Marks of where symptoms of a run began; as of notes."""
    marks = []
    for rule, finding in observed:
        x = x_of(_counters_at(finding.since, run, saved))
        if x is not None:
            since = f"{finding.since:,} {X_AXES[run.step_unit].unit}"
            marks.append(Mark(run.id, float(x), plain_text(f"{rule.title} since {since}: {finding.text}")))
    return marks


@dataclass(frozen=True)
class _Counters:
    """What a run had counted at some agent steps."""

    run_id: str
    agent_steps: int
    frames: float
    updates: float
    episodes: float
    wall_time_s: float


def _counters_at(agent_steps: int, run: Run, saved: Sequence[Checkpoint]) -> _Counters:
    rows: list[Checkpoint | Run] = sorted([*saved, run], key=lambda row: row.agent_steps)
    steps = [0, *(row.agent_steps for row in rows)]

    def at(name: str) -> float:
        return float(np.interp(agent_steps, steps, [0, *(getattr(row, name) for row in rows)]))

    counted = {name: at(name) for name in ("frames", "updates", "episodes", "wall_time_s")}
    return _Counters(run.id, agent_steps, **counted)
