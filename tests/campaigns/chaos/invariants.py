"""Invariants that must hold after any fault. Each check yields the violations that it finds."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.coordination.claims import MAX_ATTEMPTS_WITHOUT_CHECKPOINT, MAX_HOST_DEATHS_WITHOUT_CHECKPOINT
from backend.db import Attempt, Checkpoint, Episode, Evaluation, LogLine, Run
from backend.runs.runs import repository as runs
from backend.specs import events
from backend.specs.states import TRANSITIONS, RunState
from workers.engine.training.event_log import read_frames

Row = tuple[int, object]
"""Agent step and the value recorded there."""

Story = dict[str, list[Row]]
"""Rows by metric or table, as a run's event logs or its database rows contain them."""

Damage = Mapping[Path, Sequence[int]]
"""By event log, places at which it was damaged while the workers ran; it is repaired by now."""


def stories_of_logs(session: Session, run: Run, runs_dirs: list[Path]) -> list[Story]:
    """Return the attempts' logs, joined at the checkpoints from which they resumed.

    Of an attempt whose host was lost, only the recorded events count: the next attempt resumes from a
    recorded checkpoint, and without a next attempt the rest is never recorded.

    An attempt without a started event and without a checkpoint may not have started, or may have started from
    scratch: there is more than one correct answer then.
    """
    lost = {move.attempt for move in runs.transitions(session, run.id) if move.after == RunState.LOST}
    joined: list[events.AnyEvent] = []
    answers = [joined]
    for attempt in runs.attempts(session, run.id):
        logged, recorded = _read(attempt, runs_dirs)
        started = next((event for event in logged if isinstance(event, events.StartedEvent)), None)
        if started is not None:
            joined = _until_checkpoint(joined, file=started.resumed_from)
            joined = joined + (recorded if attempt.number in lost else logged)
            answers = [joined]
        elif attempt.resumed_from_agent_steps:
            answers = [
                _until_checkpoint(answer, agent_steps=attempt.resumed_from_agent_steps) for answer in answers
            ]
        else:
            answers.append([])
    return [_rows(answer) for answer in answers]


def story_of_rows(session: Session, run_id: str) -> Story:
    """Return the rows of a run that are in the database and not superseded."""
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


def check_run(
    session: Session, run: Run, runs_dirs: list[Path], damage: Damage = MappingProxyType({})
) -> Iterator[str]:
    """Yield the violations found in a run that has ended."""
    yield from _check_story(session, run, runs_dirs, damage)
    yield from _check_starts(session, run, runs_dirs)
    yield from _check_transitions(session, run)
    yield from _check_attempts(session, run)


def failed_by_attempt_limit(session: Session, run: Run) -> bool:
    """Whether a failed run reached the limit of attempts, or of deaths of its host, without a checkpoint."""
    saved = select(Checkpoint.attempt).where(Checkpoint.run_id == run.id)
    newest = max(session.scalars(saved), default=0)
    if f"{MAX_ATTEMPTS_WITHOUT_CHECKPOINT} attempts without" in run.state_reason:
        return newest <= run.attempt - MAX_ATTEMPTS_WITHOUT_CHECKPOINT
    if f"died {MAX_HOST_DEATHS_WITHOUT_CHECKPOINT} times without" in run.state_reason:
        return newest <= run.attempt - MAX_HOST_DEATHS_WITHOUT_CHECKPOINT
    return False


def _read(attempt: Attempt, runs_dirs: list[Path]) -> tuple[list[events.AnyEvent], list[events.AnyEvent]]:
    """Return an attempt's logged events, and those recorded according to the database."""
    logged: list[events.AnyEvent] = []
    recorded: list[events.AnyEvent] = []
    for path in _paths(attempt, runs_dirs):
        for frame, offset in read_frames(path):
            logged += frame
            recorded += frame if offset <= attempt.log_offset_bytes else []
    return logged, recorded


def _paths(attempt: Attempt, runs_dirs: list[Path]) -> list[Path]:
    folder = Path(attempt.run_id) / "attempts" / str(attempt.number)
    return [runs_dir / folder / "events.log" for runs_dir in runs_dirs]


def _until_checkpoint(
    logged: Sequence[events.AnyEvent], *, file: str | None = None, agent_steps: int | None = None
) -> list[events.AnyEvent]:
    """Return the events up to the newest checkpoint of this file or step; none without such a checkpoint."""
    saved = [
        place
        for place, event in enumerate(logged, 1)
        if isinstance(event, events.CheckpointSavedEvent)
        and (event.file == file or event.agent_steps == agent_steps)
    ]
    return list(logged[: saved[-1]]) if saved else []


def _rows(logged: Sequence[events.AnyEvent]) -> Story:
    story: Story = {}
    for event in logged:
        match event:
            case events.PointsEvent():
                for agent_steps, value in zip(event.agent_steps, event.value, strict=True):
                    _add(story, f"{event.metric} {event.source}", agent_steps, repr(value))
            case events.EpisodeEvent():
                _add(story, "episodes", event.agent_steps, event.replay)
            case events.CheckpointSavedEvent():
                _add(story, "checkpoints", event.agent_steps, event.sha256)
            case events.EvaluationEvent():
                _add(story, "evaluations", event.agent_steps, event.mean_return)
    return story


def _add(story: Story, name: str, agent_steps: int, what: object) -> None:
    story.setdefault(name, []).append((agent_steps, what))


def _check_story(session: Session, run: Run, runs_dirs: list[Path], damage: Damage) -> Iterator[str]:
    stored = story_of_rows(session, run.id)
    answers = stories_of_logs(session, run, runs_dirs)
    if stored in answers:
        return
    damaged = _rows(_damaged(session, run, runs_dirs, damage))
    reduced = [_without_damaged(answer, stored, damaged) for answer in answers]
    if stored in reduced:
        if not _reports_damage(session, run.id):
            yield f"run {run.id}: rows of damaged frames are missing, and its log does not say so"
        return
    answer = reduced[0]
    for name in sorted({*stored, *answer}):
        mine, expected = stored.get(name, []), answer.get(name, [])
        if mine == expected:
            continue
        missing = [row for row in expected if row not in mine]
        extra = [row for row in mine if row not in expected]
        yield (
            f"run {run.id}: {name}: {len(mine)} rows stored, {len(expected)} in the logs; "
            f"missing {missing[:3]}, unexpected {extra[:3]}, {len(mine) - len(set(mine))} duplicates"
        )


def _damaged(session: Session, run: Run, runs_dirs: list[Path], damage: Damage) -> list[events.AnyEvent]:
    """Return the events of the frames that were damaged."""
    damaged: list[events.AnyEvent] = []
    for attempt in runs.attempts(session, run.id):
        for path in _paths(attempt, runs_dirs):
            start = 0
            for frame, end in read_frames(path):
                if any(start <= place < end for place in damage.get(path, ())):
                    damaged += frame
                start = end
    return damaged


def _without_damaged(answer: Story, stored: Story, damaged: Story) -> Story:
    """Return what must be stored: all rows but those of damaged frames that are missing."""
    reduced = {}
    for name, rows in answer.items():
        mine, may_be_missing = set(stored.get(name, [])), set(damaged.get(name, []))
        kept = [row for row in rows if row in mine or row not in may_be_missing]
        if kept:
            reduced[name] = kept
    return reduced


def _reports_damage(session: Session, run_id: str) -> bool:
    lines = select(LogLine.message).where(LogLine.run_id == run_id, LogLine.level != "info")
    words = ("the event log is damaged", "of the event log are damaged", "bytes are torn")
    return any(word in message for message in session.scalars(lines) for word in words)


def _check_starts(session: Session, run: Run, runs_dirs: list[Path]) -> Iterator[str]:
    """Each attempt starts at the step of the checkpoint that it resumed from, which its name has."""
    for attempt in runs.attempts(session, run.id):
        for event in _read(attempt, runs_dirs)[0]:
            if isinstance(event, events.StartedEvent) and event.resumed_from is not None:
                step = int(event.resumed_from.split("-s")[1].removesuffix(".pt"))
                if event.agent_steps != step:
                    yield f"run {run.id}: resumed from {event.resumed_from} at step {event.agent_steps}"


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
