"""Records an attempt's event log in the database, exactly once.

One batch of the log is one transaction: rows, the run's columns and the offset after the batch. Files come
before rows: a checkpoint, replay or video is complete in the artifact store before a row refers to it.
While the database or the store is unavailable, the log stays on disk; nothing is buffered in memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from backend.analysis.media import service as media
from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.early import mark_early
from backend.coordination import claims
from backend.coordination.context import Context
from backend.db import Attempt, Run
from backend.db.clock import database_now
from backend.platform.artifacts import ArtifactKind
from backend.replays.episodes import service as episodes
from backend.runs.checkpoints import service as checkpoints
from backend.runs.evaluations import service as evaluations
from backend.runs.live_settings import service as live_settings
from backend.runs.runs import service as runs
from backend.specs import events
from backend.specs.departures import with_simulator
from backend.specs.environments import ENVIRONMENTS
from backend.specs.states import RunState
from backend.upkeep.retention import service as retention
from workers.bounds import Bounds
from workers.engine.training.event_log import read_frames, tail_is_damaged

MAX_BATCH_BYTES = 4 * 2**20
"""Approximate size of a batch, which is in memory until it is committed."""

Conclude = Callable[[Session, Run, events.EndedEvent | None], None]


@dataclass
class _Batch:
    events: list[events.AnyEvent]
    offset: int
    """Offset of the log after the batch."""
    n_bytes: int = 0


@dataclass
class _Missing:
    """Files in the events that are no longer on disk."""

    checkpoints: set[str] = field(default_factory=set)
    replays: set[str] = field(default_factory=set)


class Recorder:
    """Records the log of one attempt.

    Args:
        context: the worker's context.
        run_id: id of the run whose log it is.
        attempt: number of the attempt that wrote the log.
        fence: the attempt that holds the run during recording; the same unless a later attempt records
            the rest of an earlier one's log on this host.
    """

    def __init__(self, context: Context, run_id: str, attempt: int, *, fence: int | None = None) -> None:
        self._context = context
        self._run_id = run_id
        self._attempt = attempt
        self._fence = attempt if fence is None else fence
        self._run_dir = context.run_dir(run_id)
        self._path = self._run_dir / "attempts" / str(attempt) / "events.log"
        self._offset: int | None = None
        self._stored: dict[tuple[ArtifactKind, str], int] = {}
        """The stored files of the current batch, and their sizes."""
        self.has_started = False
        """Whether the engine's event `started` has been read, in a batch that may not be committed yet."""
        self._bounds = self._bounds_after = Bounds()
        """`_bounds_after` also counts the last batch tried, whose answer may be lost."""
        self.has_final_event = False
        """Whether the engine's final event has been read; `conclude` records it."""
        self.has_unread_tail = False
        """Whether the end of an exited engine's log, which may be its final event, is torn or damaged."""

    def record(self) -> int:
        """Record the next batch, if there is one, excluding the engine's final event.

        Returns:
            Number of bytes of the log in the batch, even if an earlier try recorded it; 0 if there is none.

        Raises:
            Superseded: the fence no longer holds the run.
        """
        batch = self._read(final_event=False)
        if batch is None:
            return 0
        missing = self._store_files(batch)
        with self._context.writing() as session:
            run = claims.lock(session, self._run_id, self._fence)
            recorded = self._write(session, run, batch, missing)
        if recorded:
            self._committed(batch)
        return batch.n_bytes

    def conclude(self, conclude: Conclude) -> None:
        """Record the rest of an exited engine's log, and end the attempt in the same transaction.

        Args:
            conclude: called with the locked run and the engine's final event, to change the run's state.

        Raises:
            Superseded: the fence no longer holds the run.
        """
        while self.record():
            pass
        batch = self._read(final_event=True)
        missing = self._store_files(batch) if batch else _Missing()
        with self._context.writing() as session:
            run = claims.lock(session, self._run_id, self._fence)
            final_event = None
            if batch is not None:
                self._write(session, run, batch, missing)
                final_event = next((e for e in batch.events if isinstance(e, events.EndedEvent)), None)
            else:
                self._log_torn_tail(session)
            conclude(session, run, final_event)

    def _read(self, *, final_event: bool) -> _Batch | None:
        if self._offset is None:
            with self._context.reading() as session:
                self._offset = claims.log_offset_bytes(session, self._run_id, self._attempt)
        batch = _Batch([], self._offset)
        for frame, offset in read_frames(self._path, self._offset):
            if any(isinstance(event, events.EndedEvent) for event in frame) and not final_event:
                self.has_final_event = True
                break
            batch.events += frame
            batch.offset, batch.n_bytes = offset, offset - self._offset
            if batch.n_bytes >= MAX_BATCH_BYTES:
                break
        return batch if batch.n_bytes else None

    def _store_files(self, batch: _Batch) -> _Missing:
        missing = _Missing()
        removed = {f for e in batch.events if isinstance(e, events.CheckpointsRemovedEvent) for f in e.files}
        for event in batch.events:
            if isinstance(event, events.CheckpointSavedEvent):
                if event.file in removed or not self._store("checkpoints", event.file):
                    missing.checkpoints.add(event.file)
            elif isinstance(event, events.EpisodeEvent) and not self._store("replays", event.replay):
                missing.replays.add(event.replay)
        return missing

    def _store(self, kind: ArtifactKind, file: str) -> bool:
        """Store a file, once even if its batch is retried; return whether it exists."""
        if (kind, file) in self._stored:
            return True
        local = self._run_dir / kind / file
        if not local.is_file():
            return False
        try:
            size_bytes = local.stat().st_size
            self._context.store.put(local, self._run_id, kind)
        except FileNotFoundError:
            return False
        self._stored[kind, file] = size_bytes
        return True

    def _write(self, session: Session, run: Run, batch: _Batch, missing: _Missing) -> bool:
        """Record a batch; return False if an earlier try, whose response was lost, has recorded it, or its
        first part: the next batch then has the rest."""
        attempt = claims.lock_attempt(session, self._run_id, self._attempt)
        if attempt.log_offset_bytes != self._offset:
            self._offset, self._bounds = attempt.log_offset_bytes, self._bounds_after
            return False
        attempt.log_offset_bytes = batch.offset
        revision = runs.touch(session, run, _parts(batch.events))
        bounds = self._bounds_after = self._bounds.copied()
        points = bounds.points(session, run.id, batch.events)
        now = database_now(session)
        if points:
            run.points_at = now
            if metrics.append(session, run.id, self._attempt, revision, points):
                runs.publish(session, run, ["metrics"])
        lines = bounds.dropped_points(now)
        if lines:
            runs.publish(session, run, ["log"])
        for event in batch.events:
            self._write_event(session, run, attempt, event, missing, lines)
        if histograms := [event for event in batch.events if isinstance(event, events.HistogramEvent)]:
            media.add_histograms(session, run, self._attempt, histograms)
        mark_early(session, run)
        runs.add_log_lines(session, run.id, self._attempt, bounds.lines(lines))
        return True

    def _write_event(
        self,
        session: Session,
        run: Run,
        attempt: Attempt,
        event: events.AnyEvent,
        missing: _Missing,
        lines: list[dict[str, Any]],
    ) -> None:
        """Record one event; points are recorded for the whole batch.

        Args:
            session: a writing session.
            run: the locked run.
            attempt: the row of the attempt that wrote the event.
            event: what happened.
            missing: files in the batch that are no longer on disk.
            lines: lines for the run's log, to which those of the event are appended.
        """
        match event:
            case events.ProvenanceEvent():
                attempt.provenance = event.provenance.model_dump(mode="json")
            case events.StartingEvent():
                if run.state == RunState.STARTING and self._fence == self._attempt:
                    run.state_reason = event.phase
                if self._bounds_after.is_new_phase(event.phase):
                    lines.append(_log_line(event.time, "info", f"starting: {event.phase}"))
            case events.StartedEvent():
                self._write_start(session, run, attempt, event, lines)
            case events.ReportEvent():
                runs.record_report(run, event)
            case events.EpisodeEvent() if event.replay not in missing.replays:
                replay_bytes = self._stored.get(("replays", event.replay))
                episodes.record(session, run.id, self._attempt, event, replay_bytes)
            case events.EvaluationEvent():
                evaluations.record(session, run.id, self._attempt, event)
            case events.CheckpointSavedEvent():
                removed = event.file in missing.checkpoints
                checkpoints.record(session, run, self._attempt, event, removed=removed)
            case events.CheckpointsRemovedEvent():
                retention.remove_thinned_checkpoints(session, run.id, event.files)
            case events.SettingsChangedEvent():
                live_settings.settle(session, run, event)
            case events.LogEvent():
                lines.append(_log_line(event.time, event.level, event.message))

    def _write_start(
        self,
        session: Session,
        run: Run,
        attempt: Attempt,
        event: events.StartedEvent,
        lines: list[dict[str, Any]],
    ) -> None:
        self.has_started = True
        if attempt.provenance is not None:
            entry = ENVIRONMENTS.get(run.environment)
            family = None if entry is None else entry.family
            packages = attempt.provenance["packages"]
            run.departures = with_simulator(
                run.departures, family, packages, attempt.resumed_from_agent_steps
            )
            known = {"device": event.device, "rollout_workers": event.rollout_workers}
            attempt.provenance = attempt.provenance | known  # another object, so that it is stored
            # An attempt that ends before its engine reports it has no provenance.
            numbers = range(self._attempt - 1, -1, -1)
            earlier = filter(None, (session.get(Attempt, (run.id, number)) for number in numbers))
            before = next(filter(None, (row.provenance for row in earlier)), None)
            if before is not None:
                changes = _changed_packages(before["packages"], packages)
                if changes:
                    message = f"other package versions than in the attempt before: {', '.join(changes)}"
                    lines.append(_log_line(event.time, "warning", message))
        # The transition logs a line of its own, which comes after them.
        runs.add_log_lines(session, run.id, self._attempt, self._bounds_after.lines(lines))
        lines.clear()
        if run.state == RunState.STARTING and self._fence == self._attempt:
            reason, at = f"training on {event.device}", datetime.fromtimestamp(event.time, UTC)
            runs.transition(session, run, RunState.RUNNING, reason, logged_at=at)

    def _committed(self, batch: _Batch) -> None:
        self._offset = batch.offset
        self._bounds = self._bounds_after
        for kind, file in self._stored:
            if kind == "replays":  # no engine reads a replay; it resumes from checkpoints
                (self._run_dir / kind / file).unlink(missing_ok=True)
        self._stored.clear()

    def _log_torn_tail(self, session: Session) -> None:
        size_bytes = self._path.stat().st_size if self._path.exists() else 0
        if self._offset is not None and size_bytes > self._offset:
            torn_bytes = size_bytes - self._offset
            message = f"the engine died while writing its event log: the last {torn_bytes} bytes are torn"
            self.has_unread_tail = True
            if tail_is_damaged(self._path, self._offset):
                message = f"the last {torn_bytes} bytes of the event log are damaged; check the disk"
            runs.log(session, self._run_id, self._attempt, "warning", message)


def _changed_packages(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What differs between two attempts, such as `ale-py 0.11.2 to 0.12.1`."""
    return [
        f"{name} {before.get(name, 'none')} to {now.get(name, 'none')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def _log_line(time_s: float, level: str, message: str) -> dict[str, Any]:
    return {"time": datetime.fromtimestamp(time_s, UTC), "level": level, "message": message}


def _parts(batch: Sequence[events.AnyEvent]) -> set[str]:
    """The parts of a run that a batch changes, for pages that show them; none if anything may change."""
    parts = set()
    for event in batch:
        match event:
            case events.PointsEvent():
                parts.add("series/" + event.metric.split("/")[0])
            case events.HistogramEvent():
                parts.add(media.PART)
            case events.ReportEvent():
                parts.add("progress")
            case events.EpisodeEvent():
                parts.add("episodes")
            case events.EvaluationEvent():
                parts.add("evaluations")
            case events.CheckpointSavedEvent() | events.CheckpointsRemovedEvent():
                parts.add("checkpoints")
            case events.LogEvent():
                parts.add("log")
            case _:
                return set()
    return parts
