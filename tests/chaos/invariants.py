"""What must hold whatever went wrong: each check gives the violations it finds, in words."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
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


@dataclass
class Story:
    """What a run's logs tell, or what its rows do: rows in order, by what they are of."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def cut(self, after_agent_steps: int) -> "Story":
        """Without all that came after a checkpoint."""
        kept = Story()
        for name, rows in self.rows.items():
            kept.rows[name] = [row for row in rows if row[0] <= after_agent_steps]
        return kept

    def add(self, name: str, agent_steps: int, what: object) -> None:
        """Add a row."""
        self.rows[name].append((agent_steps, what))


def told_by_logs(attempts: list[Attempt], runs_dirs: list[Path]) -> list[Story]:
    """The attempts' logs joined at the checkpoints.

    An attempt that died before its first word may or may not have cut already what a later one would cut;
    where the last one did, there is more than one right answer.
    """
    story, answers = Story(), []
    for attempt in attempts:
        logs = [d / attempt.run_id / "attempts" / str(attempt.number) / "events.log" for d in runs_dirs]
        said = [event for path in logs for frame, _ in read_frames(path) for event in frame]
        begun = next((event for event in said if isinstance(event, events.Started)), None)
        cut = story.cut(attempt.resumed_from_agent_steps)
        if begun is None:
            answers = [story, cut, Story()]
            continue
        story = cut if begun.resumed_from else Story()
        for event in said:
            _tell(story, event)
        answers = [story]
    return answers or [story]


def told_by_rows(session: Session, run_id: str) -> Story:
    """What the database has of a run and draws."""
    story = Story()
    for series in metrics.list_series(session, [run_id]):
        for part in metrics.all_points(session, series.id):
            for agent_steps, value in zip(part["agent_steps"], part["value"], strict=True):
                story.add(f"{series.metric} {series.source}", int(agent_steps), repr(float(value)))
    for table, name, what in (
        (Episode, "episodes", Episode.replay),
        (Checkpoint, "checkpoints", Checkpoint.sha256),
        (Evaluation, "evaluations", Evaluation.mean_return),
    ):
        rows = select(table.agent_steps, what).where(table.run_id == run_id, ~table.superseded)
        for agent_steps, value in session.execute(rows.order_by(table.id)):
            story.add(name, agent_steps, value)
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


def _tell(story: Story, event: events.AnyEvent) -> None:
    match event:
        case events.Points():
            for agent_steps, value in zip(event.agent_steps, event.value, strict=True):
                story.add(f"{event.metric} {event.source}", agent_steps, repr(value))
        case events.Episode():
            story.add("episodes", event.agent_steps, event.replay)
        case events.CheckpointSaved():
            story.add("checkpoints", event.agent_steps, event.sha256)
        case events.Evaluation():
            story.add("evaluations", event.agent_steps, event.mean_return)
        case _:
            pass


def _check_story(session: Session, run: Run, runs_dirs: list[Path]) -> Iterator[str]:
    stored = told_by_rows(session, run.id)
    answers = told_by_logs(list(runs.attempts(session, run.id)), runs_dirs)
    lost = _ended_by_loss(session, run)
    names = sorted(set(stored.rows).union(*(answer.rows for answer in answers)))
    for name in names:
        mine = stored.rows.get(name, [])
        if any(mine == answer.rows.get(name, []) for answer in answers):
            continue
        if lost and any(_is_all_that_counts(mine, answer.rows.get(name, []), stored) for answer in answers):
            continue
        told = answers[0].rows.get(name, [])
        missing = [row for row in told if row not in mine]
        extra = [row for row in mine if row not in told]
        yield (
            f"run {run.id}: {name}: {len(mine)} rows stored, {len(told)} told by the logs; "
            f"missing {missing[:3]}, too many {extra[:3]}, {len(mine) - len(set(mine))} twice"
        )


def _ended_by_loss(session: Session, run: Run) -> bool:
    """Whether its host was lost, and nobody went on: nothing could be resumed from the rest of that log."""
    moves = [move.after for move in runs.transitions(session, run.id)]
    return len(moves) > 1 and moves[-2] == RunState.LOST


def _is_all_that_counts(mine: list[Row], told: list[Row], stored: Story) -> bool:
    """Whether rows are what the log told until some moment after the newest checkpoint."""
    newest = max((agent_steps for agent_steps, _ in stored.rows.get("checkpoints", [])), default=0)
    return mine == told[: len(mine)] and all(agent_steps > newest for agent_steps, _ in told[len(mine) :])


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
