"""What must hold whatever went wrong: each check gives the violations it finds, in words."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Attempt, Checkpoint, Episode, Evaluation, Run
from backend.metrics import repository as metrics
from backend.runs import repository as runs
from backend.specs import events
from backend.specs.states import TRANSITIONS, RunState
from workers.claims import MAX_ATTEMPTS_WITHOUT_CHECKPOINT
from workers.engine.event_log import read_frames

Row = tuple[int, object]
"""Agent step, and what happened there."""

Story = dict[str, list[Row]]
"""What a run's logs tell, or what its rows do: rows by what they are of."""


def told_by_logs(session: Session, run: Run, runs_dirs: list[Path]) -> list[Story]:
    """The attempts' logs joined where each went on: right behind its checkpoint.

    Of an attempt whose host was lost, only what was recorded by then counts: the next one goes on from a
    recorded checkpoint, and without a next one the rest is nobody's.

    An attempt that ended before its first word, and has no checkpoint to its name, may never have begun or
    have begun from scratch: there is more than one right answer then.
    """
    lost = {move.attempt for move in runs.transitions(session, run.id) if move.after == RunState.LOST}
    joined: list[events.AnyEvent] = []
    answers = [joined]
    for attempt in runs.attempts(session, run.id):
        said, recorded = _read(attempt, runs_dirs)
        begun = next((event for event in said if isinstance(event, events.Started)), None)
        if begun is not None:
            joined = _until_checkpoint(joined, file=begun.resumed_from)
            joined = joined + (recorded if attempt.number in lost else said)
            answers = [joined]
        elif attempt.resumed_from_agent_steps:
            answers = [
                _until_checkpoint(answer, agent_steps=attempt.resumed_from_agent_steps) for answer in answers
            ]
        else:
            answers.append([])
    return [_rows(answer) for answer in answers]


def told_by_rows(session: Session, run_id: str) -> Story:
    """What the database has of a run and draws."""
    story: Story = {}
    for series in metrics.list_series(session, [run_id]):
        for part in metrics.all_points(session, series.id):
            for agent_steps, value in zip(part["agent_steps"], part["value"], strict=True):
                _add(story, f"{series.metric} {series.source}", int(agent_steps), repr(float(value)))
    for table, name, what in (
        (Episode, "episodes", Episode.replay),
        (Checkpoint, "checkpoints", Checkpoint.sha256),
        (Evaluation, "evaluations", Evaluation.mean_return),
    ):
        rows = select(table.agent_steps, what).where(table.run_id == run_id, ~table.superseded)
        for agent_steps, value in session.execute(rows.order_by(table.agent_steps, table.attempt)):
            _add(story, name, agent_steps, value)
    return story


def check_run(session: Session, run: Run, runs_dirs: list[Path]) -> Iterator[str]:
    """The violations found in one run that has ended."""
    yield from _check_story(session, run, runs_dirs)
    yield from _check_transitions(session, run)
    yield from _check_attempts(session, run)


def failed_rightly(session: Session, run: Run) -> bool:
    """Whether a failed run had its three attempts in a row without a new checkpoint."""
    if f"{MAX_ATTEMPTS_WITHOUT_CHECKPOINT} attempts without" not in run.state_reason:
        return False
    saved = select(Checkpoint.attempt).where(Checkpoint.run_id == run.id)
    newest = max(session.scalars(saved), default=0)
    return newest <= run.attempt - MAX_ATTEMPTS_WITHOUT_CHECKPOINT


def _read(attempt: Attempt, runs_dirs: list[Path]) -> tuple[list[events.AnyEvent], list[events.AnyEvent]]:
    """All that an attempt said, and what of it is recorded by the database's own account."""
    said: list[events.AnyEvent] = []
    recorded: list[events.AnyEvent] = []
    for runs_dir in runs_dirs:
        path = runs_dir / attempt.run_id / "attempts" / str(attempt.number) / "events.log"
        for frame, offset in read_frames(path):
            said += frame
            recorded += frame if offset <= attempt.log_offset_bytes else []
    return said, recorded


def _until_checkpoint(
    told: Sequence[events.AnyEvent], *, file: str | None = None, agent_steps: int | None = None
) -> list[events.AnyEvent]:
    """What was told until the newest checkpoint of this name or step was saved; nothing without one."""
    saved = [
        place
        for place, event in enumerate(told, 1)
        if isinstance(event, events.CheckpointSaved)
        and (event.file == file or event.agent_steps == agent_steps)
    ]
    return list(told[: saved[-1]]) if saved else []


def _rows(told: Sequence[events.AnyEvent]) -> Story:
    story: Story = {}
    for event in told:
        match event:
            case events.Points():
                for agent_steps, value in zip(event.agent_steps, event.value, strict=True):
                    _add(story, f"{event.metric} {event.source}", agent_steps, repr(value))
            case events.Episode():
                _add(story, "episodes", event.agent_steps, event.replay)
            case events.CheckpointSaved():
                _add(story, "checkpoints", event.agent_steps, event.sha256)
            case events.Evaluation():
                _add(story, "evaluations", event.agent_steps, event.mean_return)
    return story


def _add(story: Story, name: str, agent_steps: int, what: object) -> None:
    story.setdefault(name, []).append((agent_steps, what))


def _check_story(session: Session, run: Run, runs_dirs: list[Path]) -> Iterator[str]:
    stored = told_by_rows(session, run.id)
    answers = told_by_logs(session, run, runs_dirs)
    if stored in answers:
        return
    answer = answers[0]
    for name in sorted({*stored, *answer}):
        mine, told = stored.get(name, []), answer.get(name, [])
        if mine == told:
            continue
        missing = [row for row in told if row not in mine]
        extra = [row for row in mine if row not in told]
        yield (
            f"run {run.id}: {name}: {len(mine)} rows stored, {len(told)} told by the logs; "
            f"missing {missing[:3]}, too many {extra[:3]}, {len(mine) - len(set(mine))} twice"
        )


def _check_transitions(session: Session, run: Run) -> Iterator[str]:
    before: str | None = None
    for move in runs.transitions(session, run.id):
        if move.before != before:
            yield f"run {run.id}: moved from {move.before} while it was {before}"
        if before is not None and move.after not in TRANSITIONS[RunState(before)]:
            yield f"run {run.id}: moved from {before} to {move.after}"
        before = move.after
    if before != run.state:
        yield f"run {run.id}: is {run.state}, was last moved to {before}"


def _check_attempts(session: Session, run: Run) -> Iterator[str]:
    attempts = runs.attempts(session, run.id)
    if [attempt.number for attempt in attempts] != list(range(1, run.attempt + 1)):
        yield f"run {run.id}: attempts {[a.number for a in attempts]}, counted {run.attempt}"
    yield from (f"run {run.id}: attempt {a.number} never ended" for a in attempts if a.ended_at is None)
