"""An attempt's event log into the database, exactly once.

One batch of the log is one transaction: rows, the run's columns and the offset after the batch. Files come
before rows: a checkpoint, replay or video is complete in the artifact store before a row speaks of it.
While the database or the store is away the log waits on disk; nothing is held in memory meanwhile.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from backend.artifacts import Kind
from backend.db import Attempt, Checkpoint, Episode, Evaluation, Run
from backend.db.clock import database_now
from backend.db.ids import new_id
from backend.evaluations import repository as evaluations
from backend.live_settings import repository as live_settings
from backend.metrics import repository as metrics
from backend.runs import repository as runs
from backend.specs import events
from backend.specs.states import RunState
from workers import claims
from workers.context import Context
from workers.engine.event_log import read_frames
from workers.text import storable

MAX_BATCH_BYTES = 4 * 2**20
"""About how much of the log is read at a time; what it holds is in memory until it is committed."""

Conclude = Callable[[Session, Run, events.Ended | None], None]


@dataclass
class _Batch:
    events: list[events.AnyEvent]
    offset: int
    """Where the log goes on after it."""
    n_bytes: int = 0
    thinned: list[str] = field(default_factory=list)
    """Checkpoints whose files leave the store once it is committed."""


@dataclass
class _Missing:
    """Files the engine spoke of that are no longer on its disk."""

    checkpoints: set[str] = field(default_factory=set)
    replays: set[str] = field(default_factory=set)


class Recorder:
    """Records the log of one attempt.

    Args:
        context: the worker's.
        run_id: whose log it is.
        attempt: which attempt wrote it.
        fence: the attempt that holds the run while this records; the same unless a later attempt records
            what an earlier one left behind on this host.
    """

    def __init__(self, context: Context, run_id: str, attempt: int, *, fence: int | None = None) -> None:
        self._context = context
        self._run_id = run_id
        self._attempt = attempt
        self._fence = attempt if fence is None else fence
        self._run_dir = context.run_dir(run_id)
        self._path = self._run_dir / "attempts" / str(attempt) / "events.log"
        self._offset: int | None = None
        self._stored: set[tuple[Kind, str]] = set()
        self.ended = False
        """Whether the engine's last word has been read; it is recorded by `conclude`."""

    def record(self) -> int:
        """Record the next batch, where there is one, up to the engine's last word.

        Returns:
            How many bytes of the log it was.

        Raises:
            Superseded: the fence no longer holds the run.
        """
        batch = self._read(last_word=False)
        if batch is None:
            return 0
        missing = self._store_files(batch)
        with self._context.writing() as session:
            run = claims.held(session, self._run_id, self._fence)
            recorded = self._write(session, run, batch, missing)
        if recorded:
            self._committed(batch)
        return batch.n_bytes

    def conclude(self, conclude: Conclude) -> None:
        """Record all that is left of a dead engine's log, and end the attempt in the same transaction.

        Args:
            conclude: called with the locked run and the engine's last word, to move the run on.

        Raises:
            Superseded: the fence no longer holds the run.
        """
        while self.record():
            pass
        batch = self._read(last_word=True)
        missing = self._store_files(batch) if batch else _Missing()
        with self._context.writing() as session:
            run = claims.held(session, self._run_id, self._fence)
            last_word = None
            if batch is not None:
                self._write(session, run, batch, missing)
                last_word = next((e for e in batch.events if isinstance(e, events.Ended)), None)
            else:
                self._note_torn_tail(session)
            conclude(session, run, last_word)

    def _read(self, *, last_word: bool) -> _Batch | None:
        if self._offset is None:
            with self._context.reading() as session:
                log = session.get(Attempt, (self._run_id, self._attempt))
            if log is None:
                raise claims.Superseded(f"run {self._run_id} is gone")
            self._offset = log.log_offset_bytes
        batch = _Batch([], self._offset)
        for frame, offset in read_frames(self._path, self._offset):
            if any(isinstance(event, events.Ended) for event in frame) and not last_word:
                self.ended = True
                break
            batch.events += frame
            batch.offset, batch.n_bytes = offset, offset - self._offset
            if batch.n_bytes >= MAX_BATCH_BYTES:
                break
        return batch if batch.n_bytes else None

    def _store_files(self, batch: _Batch) -> _Missing:
        missing = _Missing()
        removed = {f for e in batch.events if isinstance(e, events.CheckpointsRemoved) for f in e.files}
        for event in batch.events:
            if isinstance(event, events.CheckpointSaved):
                if event.file in removed or not self._store("checkpoints", event.file):
                    missing.checkpoints.add(event.file)
            elif isinstance(event, events.Episode) and not self._store("replays", event.replay):
                missing.replays.add(event.replay)
        return missing

    def _store(self, kind: Kind, file: str) -> bool:
        """Keep a file; once is enough, however often its batch has to be tried."""
        if (kind, file) in self._stored:
            return True
        local = self._run_dir / kind / file
        if not local.is_file():
            return False
        try:
            self._context.store.put(local, self._run_id, kind)
        except FileNotFoundError:
            return False
        self._stored.add((kind, file))
        return True

    def _write(self, session: Session, run: Run, batch: _Batch, missing: _Missing) -> bool:
        log = session.get_one(Attempt, (self._run_id, self._attempt), with_for_update=True)
        if log.log_offset_bytes != self._offset:
            # An earlier try was committed after all, though its answer was lost on the way.
            self._offset = log.log_offset_bytes
            return False
        log.log_offset_bytes = batch.offset
        revision = runs.touch(session, run)
        points = [event for event in batch.events if isinstance(event, events.Points)]
        if points:
            metrics.append(session, run.id, self._attempt, revision, points)
        lines = []
        for event in batch.events:
            match event:
                case events.Started():
                    if run.state == RunState.STARTING and self._fence == self._attempt:
                        runs.transition(session, run, RunState.RUNNING, f"training on {event.device}")
                case events.Report():
                    _copy_report(run, event)
                case events.Episode() if event.replay not in missing.replays:
                    session.add(self._episode(session, event))
                case events.Evaluation():
                    session.add(self._evaluation(session, event))
                case events.CheckpointSaved():
                    session.add(self._checkpoint(session, run, event, event.file in missing.checkpoints))
                    run.attempts_without_checkpoint = 0
                case events.CheckpointsRemoved():
                    session.flush()
                    awaited = evaluations.awaited_checkpoints(session, run.id)
                    thinned = [file for file in event.files if file not in awaited]
                    batch.thinned += thinned
                    session.execute(
                        update(Checkpoint)
                        .where(Checkpoint.run_id == run.id, Checkpoint.file.in_(thinned))
                        .values(removed=True)
                    )
                case events.SettingsChanged():
                    live_settings.settle(session, run, event)
                case events.Log():
                    time = datetime.fromtimestamp(event.time, UTC)
                    lines.append({"time": time, "level": event.level, "message": storable(event.message)})
        runs.add_log_lines(session, run.id, self._attempt, lines)
        return True

    def _committed(self, batch: _Batch) -> None:
        self._offset = batch.offset
        self._stored.clear()
        for file in batch.thinned:
            # A store that is away keeps a file too many, no more.
            with suppress(OSError):
                self._context.store.delete(self._run_id, "checkpoints", file)

    def _note_torn_tail(self, session: Session) -> None:
        size_bytes = self._path.stat().st_size if self._path.exists() else 0
        if self._offset is not None and size_bytes > self._offset:
            torn_bytes = size_bytes - self._offset
            message = f"the engine died while writing: the last {torn_bytes} bytes of its log are torn"
            line = {"time": database_now(session), "level": "warning", "message": message}
            runs.add_log_lines(session, self._run_id, self._attempt, [line])

    def _episode(self, session: Session, event: events.Episode) -> Episode:
        columns = event.model_dump(exclude={"type"})
        return Episode(
            id=new_id(),
            run_id=self._run_id,
            attempt=self._attempt,
            recorded_at=database_now(session),
            **columns,
        )

    def _evaluation(self, session: Session, event: events.Evaluation) -> Evaluation:
        columns = event.model_dump(exclude={"type"})
        return Evaluation(
            id=new_id(),
            run_id=self._run_id,
            attempt=self._attempt,
            requested_at=database_now(session),
            n_episodes=len(event.returns),
            **columns,
        )

    def _checkpoint(
        self, session: Session, run: Run, event: events.CheckpointSaved, removed: bool
    ) -> Checkpoint:
        columns = event.model_dump(exclude={"type"})
        return Checkpoint(
            id=new_id(),
            run_id=self._run_id,
            attempt=self._attempt,
            recorded_at=database_now(session),
            score=run.score,
            best_return=run.best_return,
            removed=removed,
            **columns,
        )


RATE_MEMORY_S = 10.0
"""Training time over which a run's rate is averaged: time left must not jump about."""


def _copy_report(run: Run, report: events.Report) -> None:
    rate = report.agent_steps_per_s
    if run.agent_steps_per_s is not None:
        # Of what came since the last report; nothing where no time was trained.
        share = -math.expm1(min(0.0, run.wall_time_s - report.wall_time_s) / RATE_MEMORY_S)
        rate = run.agent_steps_per_s + (rate - run.agent_steps_per_s) * share
    run.agent_steps = report.agent_steps
    run.frames = report.frames
    run.updates = report.updates
    run.episodes = report.episodes
    run.wall_time_s = report.wall_time_s
    run.agent_steps_per_s = rate
    run.score = report.mean_return_100
    run.best_return = report.best_return
