"""Supervises one attempt at one run: starts the engine, records its events and its outcome.

The supervising thread must live as long as an engine that it starts as a process of its own: the kernel kills
the engine when the thread ends.
"""

import json
import math
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from time import monotonic
from typing import TypeVar

import structlog
from sqlalchemy.orm import Session

from backend.coordination import claims
from backend.coordination.claims import Claim, Superseded
from backend.coordination.context import TRANSIENT_ERRORS, Context, retry_until_available
from backend.db import Run
from backend.platform.artifacts import StoreUnavailable
from backend.runs.runs import service as runs
from backend.specs import machine_faults
from backend.specs.commands import ChangeSettings, SaveCheckpoint, Stop, Watch
from backend.specs.events import EndedEvent
from backend.specs.states import RunState
from workers import resume
from workers.engine_process import ENGINE_COMMAND, EngineProcess, ProcessIdentity, WakeUp, memory_bytes
from workers.engine_server import EngineServer
from workers.gameplay import Gameplay
from workers.outcome import AttemptOutcome, attempt_outcome, machine_fault
from workers.recorder import MAX_BATCH_BYTES, Recorder

TICK_S = 0.2
FRAME_TICK_S = 0.05
_FRAMES_PER_TICK = 4
"""Maximum number of frames published together; older ones are too late to show."""
RECORD_INTERVAL_S = 0.5
"""Minimum time between two batches of training, unless the log has grown by more than a batch."""

SILENT_S = 300.0
"""An engine that has reported nothing for so long is mentioned in the run's log."""
STOP_TIMEOUT_S = 20.0
"""How long an engine may take to save its last checkpoint before it is killed."""
START_STOP_TIMEOUT_S = 6.0
"""The same while it starts and has nothing to save."""
SHUTDOWN_STOP_TIMEOUT_S = 6.0
"""The same while the worker shuts down, which may take at most 10 s."""

_MAX_BACKOFF_S = 10.0

log = structlog.get_logger(__name__)
T = TypeVar("T")


class _Interrupted(Exception):
    """A stop was requested before the engine started."""


class Supervisor:
    """Supervises one claimed attempt, by `run` or `start`; every other method may be called from any thread.

    Args:
        context: the worker's context.
        claim: claim of the attempt.
        gameplay: publishes frames of the training.
        command: the engine's command.
        server: forks the engine, where that is possible; None: it is always started by the command.
        may_use_gpu: whether its engine may use a GPU of this host.
        gpu: UUID of the GPU that its engine may use; None: CUDA's choice.
        on_end: called when the attempt is over and its slot is free.
        on_disk_fault: called with the errno of a fault of this host's disk.
    """

    def __init__(
        self,
        context: Context,
        claim: Claim,
        *,
        gameplay: Gameplay,
        command: Sequence[str] = ENGINE_COMMAND,
        server: EngineServer | None = None,
        may_use_gpu: bool = False,
        gpu: str | None = None,
        on_end: Callable[[], None] = lambda: None,
        on_disk_fault: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.claim = claim
        self.gpu = gpu
        self.outcome: AttemptOutcome | None = None
        """How the attempt ended; None before its end, and if it was superseded."""
        self._ended = threading.Event()
        self._context = context
        self._gameplay = gameplay
        self._is_watched = False
        self._command = command
        self._server = server
        self._may_use_gpu = may_use_gpu
        self._not_forked: str | None = None
        """Why the engine is not forked from the server; None if it is, or without a server."""
        self._on_end = on_end
        self._on_disk_fault = on_disk_fault
        self._run_dir = context.run_dir(claim.run_id)
        self._attempt_dir = self._run_dir / "attempts" / str(claim.attempt)
        self._output = self._attempt_dir / "stderr.log"
        self._process: EngineProcess | None = None
        self._has_damaged_checkpoint = False
        self._wake = WakeUp()
        self._requested: str | None = None
        self._settings: Sequence[ChangeSettings] = ()
        self._settings_version = 0
        self._checkpoint_at: datetime | None = None
        self._sent_checkpoint_at: datetime | None = None
        self._is_shutting_down = False
        self._is_superseded = False
        self._stop_sent_at: float | None = None
        self._stop_timed_out = False
        self._record_at = 0.0
        self._caught_up_at: float | None = None
        """When all that the engine had logged was last recorded."""
        self._reported_at = monotonic()
        """When the engine last reported anything; in the far future once its silence is in the run's log."""
        self._backoff_s = 0.0

    def request(
        self,
        stop: str | None,
        settings: Sequence[ChangeSettings] = (),
        checkpoint_at: datetime | None = None,
    ) -> None:
        """Set the current requests for the run.

        Args:
            stop: `stop` or `kill`; None if neither is requested.
            settings: changes that its engine has not acknowledged yet, oldest first.
            checkpoint_at: when a checkpoint was requested that is not recorded yet.
        """
        self._settings, self._checkpoint_at = settings, checkpoint_at
        if stop != self._requested or settings or checkpoint_at != self._sent_checkpoint_at:
            self._requested = stop
            self._wake.set()
        if stop == "kill":
            self.kill()  # its own thread may wait for an artifact store that does not answer

    def requeue_for_shutdown(self) -> None:
        """Save a checkpoint, stop and queue the run again, because the worker is shutting down."""
        self._is_shutting_down = True
        self._wake.set()

    def supersede(self) -> None:
        """Kill the engine and write nothing more, because the attempt no longer holds the run."""
        self._is_superseded = True
        self._wake.set()
        self.kill()

    def kill(self) -> None:
        """Kill the engine now."""
        if self._process is not None:
            self._process.kill()

    def memory_bytes(self) -> int:
        """Proportional memory of the engine and its processes; 0 before it starts."""
        return 0 if self._process is None else memory_bytes(self._process.pid)

    def recorder_lag_s(self) -> float:
        """Seconds since the recorder last caught up with the engine's log; 0 before the engine starts."""
        return 0.0 if self._caught_up_at is None else max(0.0, monotonic() - self._caught_up_at)

    def is_alive(self) -> bool:
        """Whether the attempt has not ended; True before it starts."""
        return not self._ended.is_set()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the attempt is over."""
        self._ended.wait(timeout_s)

    def start(self) -> None:
        """Supervise in a new thread."""
        threading.Thread(target=self.run, name=f"run-{self.claim.run_id}", daemon=True).start()

    def run(self) -> None:
        """Supervise until the attempt is over."""
        with structlog.contextvars.bound_contextvars(run_id=self.claim.run_id, attempt=self.claim.attempt):
            try:
                self._supervise()
            except Superseded:
                log.warning("run.superseded")
            except Exception as error:
                log.exception("run.supervisor_error")
                self._fail(error, traceback.format_exc())
            finally:
                if self._process is not None:
                    self._process.reap()
                self._ended.set()
                self._on_end()

    def _supervise(self) -> None:
        recorder = Recorder(self._context, self.claim.run_id, self.claim.attempt)
        try:
            checkpoint = self._retry(self._prepare, interruptible=True)
            # Retried, not failed: a host that cannot start a process now would fail every run that it claims.
            self._process = self._retry(partial(self._start_engine, checkpoint), interruptible=True)
        except _Interrupted:
            self._retry(partial(self._conclude_unstarted, recorder))
            return
        self._caught_up_at = monotonic()
        log.info("engine.started", pid=self._process.pid, resumes=checkpoint, not_forked=self._not_forked)
        if self._not_forked is not None:
            self._log(f"its engine is a process of its own, not forked: {self._not_forked}", "info")
        self._after_start(recorder)
        has_lowered_priority = has_cut_output = False
        while not self._process.has_exited():
            self._process.wait_for_exit(FRAME_TICK_S if self._is_watched else TICK_S, self._wake.fileno())
            self._wake.clear()
            self._forward_frames()
            if self._process.bound_output() and not has_cut_output:
                file = self._output.relative_to(self._run_dir)
                self._log(f"it prints a lot: only the end is kept, in the run's folder as {file}")
                has_cut_output = True
            self._record(recorder)
            if recorder.has_started and not has_lowered_priority:
                # Only once it trains: before, somebody may be waiting for it to start.
                self._process.yield_cpu(self._context.settings.engine_niceness)
                has_lowered_priority = True
            self._send_commands(recorder)
        self._after_exit(self._process.reap(), checkpoint)
        self._retry(partial(recorder.conclude, partial(self._conclude, recorder)))

    def _prepare(self) -> str | None:
        """Write what the engine reads; returns the checkpoint that it resumes from."""
        return resume.prepare(self._context, self.claim)

    def _after_start(self, recorder: Recorder) -> None:
        """Called once the process has been started; the engine reports the rest by events."""

    def _after_exit(self, status: int, checkpoint: str | None) -> None:
        """Note what the exit status of the engine reports of its machine."""
        if (fault := machine_faults.errno_of_exit_status(status)) is not None:
            self._on_disk_fault(fault)
        if checkpoint is not None and status == machine_faults.UNREADABLE_CHECKPOINT_STATUS:
            self._has_damaged_checkpoint = self._retry(
                partial(resume.is_damaged, self._context, self.claim, checkpoint)
            )

    def _start_engine(self, checkpoint: str | None) -> EngineProcess:
        self._attempt_dir.mkdir(parents=True, exist_ok=True)
        arguments = ["train", str(self._run_dir), "--attempt", str(self.claim.attempt)]
        if checkpoint is not None:
            arguments += ["--resume", checkpoint]
        self._not_forked = self._await_server()
        return self._started(
            EngineProcess(
                arguments,
                output=self._output,
                control=True,
                command=self._command,
                fork=None if self._server is None or self._not_forked else self._server.fork,
                environment=None if self.gpu is None else {"CUDA_VISIBLE_DEVICES": self.gpu},
            )
        )

    def _started(self, process: EngineProcess) -> EngineProcess:
        """The process, once it is recorded so that a later attempt can kill it."""
        try:
            ProcessIdentity(self._attempt_dir).write(process.pid)
        except BaseException:
            process.reap()
            raise
        return process

    def _await_server(self) -> str | None:
        """Wait until the engine server can fork the engine; return why it cannot, if so."""
        if self._server is None:
            return None
        if self._may_use_gpu or self.gpu is not None:
            return "it may use a GPU"
        spec = json.loads((self._run_dir / "spec.json").read_text("utf-8"))
        return self._server.why_not(spec["environment"], partial(self._check, interruptible=True))

    def _forward_frames(self) -> None:
        """Have the engine send frames while a viewer watches, and publish them."""
        assert self._process is not None
        watched = self._gameplay.is_watched(self.claim.run_id)
        if watched != self._is_watched:
            deque(self._process.messages(), maxlen=0)  # frames left from the viewer before
            self._process.send(Watch(on=watched))
            self._is_watched = watched
        if watched:
            for frame in deque(self._process.messages(), maxlen=_FRAMES_PER_TICK):
                self._gameplay.publish(self.claim.run_id, frame)

    def _record(self, recorder: Recorder) -> None:
        started_at = monotonic()
        if started_at < self._record_at:
            return
        try:
            n_bytes = recorder.record()
            if n_bytes < MAX_BATCH_BYTES:
                self._caught_up_at = started_at
            if n_bytes:
                self._reported_at = started_at
            elif recorder.has_started and started_at - self._reported_at > SILENT_S:
                self._log(
                    f"its engine has reported nothing for {SILENT_S:.0f} s: a step or an evaluation takes "
                    "long, or does not return; what is recorded stays if it is stopped or killed"
                )
                self._reported_at = math.inf
            self._backoff_s = 0.0
            # While it starts, every phase is shown at once.
            is_routine = recorder.has_started and n_bytes < MAX_BATCH_BYTES
            wait_s = RECORD_INTERVAL_S if is_routine else 0.0
        except TRANSIENT_ERRORS as error:
            wait_s = self._next_backoff_s(error)
        self._record_at = monotonic() + wait_s

    def _send_commands(self, recorder: Recorder) -> None:
        """Send requests to the engine; kill it if a stop is not obeyed in time."""
        assert self._process is not None
        if self._is_superseded:
            raise Superseded
        for settings in self._settings:
            if settings.version > self._settings_version:
                self._process.send(settings)
                self._settings_version = settings.version
        if self._checkpoint_at not in (None, self._sent_checkpoint_at):
            self._sent_checkpoint_at = self._checkpoint_at
            self._process.send(SaveCheckpoint())
        now = monotonic()
        if self._stop_sent_at is None and (self._is_shutting_down or self._requested == "stop"):
            reason = "stop requested" if self._requested else "its worker is shutting down"
            self._ask_to_stop(reason, recorder)
            self._stop_sent_at = now
        if self._stop_sent_at is None and recorder.has_final_event:
            # The engine only has to exit; if it hangs it is killed, and its final event stands.
            self._stop_sent_at = now
        timeout_s = SHUTDOWN_STOP_TIMEOUT_S if self._is_shutting_down else STOP_TIMEOUT_S
        if not recorder.has_started:
            timeout_s = min(timeout_s, START_STOP_TIMEOUT_S)
        if self._stop_sent_at is not None and now - self._stop_sent_at > timeout_s:
            self._stop_timed_out = True
        if self._requested == "kill" or self._stop_timed_out:
            self._process.kill()

    def _ask_to_stop(self, reason: str, recorder: Recorder) -> None:
        assert self._process is not None
        self._process.send(Stop(reason=reason))
        if not recorder.has_started:
            self._process.terminate()  # it reads commands only once it trains

    def _conclude_unstarted(self, recorder: Recorder) -> None:
        """End an attempt that started no engine.

        No log is read: after a restore of the database, a log of the same number may be another attempt's.
        """
        with self._context.writing() as session:
            run = claims.lock(session, self.claim.run_id, self.claim.attempt)
            self._conclude(recorder, session, run, None)

    def _conclude(
        self, recorder: Recorder, session: Session, run: Run, final_event: EndedEvent | None
    ) -> None:
        outcome = self._outcome_of(run, final_event, recorder)
        self._end_attempt(session, run, outcome)
        log.info("attempt.ended", state=outcome.state.value, reason=outcome.reason)

    def _outcome_of(self, run: Run, final_event: EndedEvent | None, recorder: Recorder) -> AttemptOutcome:
        process = self._process
        return attempt_outcome(
            run,
            final_event,
            process.returncode if process else None,
            is_shutting_down=self._is_shutting_down,
            stop_timed_out=self._stop_timed_out,
            output_tail=process.output_tail() if process else "",
            has_unread_tail=recorder.has_unread_tail,
            has_damaged_checkpoint=self._has_damaged_checkpoint,
        )

    def _end_attempt(self, session: Session, run: Run, outcome: AttemptOutcome) -> None:
        if not outcome.counts_as_attempt:
            claims.uncount_attempt(run)
        claims.end_attempt(session, run, outcome.state, outcome.reason, outcome.error, outcome.level)
        self.outcome = outcome

    def _fail(self, error: Exception, trace: str) -> None:
        if self._process is not None:
            self._process.reap()
        fault = machine_faults.errno_of(error) if isinstance(error, OSError) else None
        if fault is not None:
            self._on_disk_fault(fault)

        def fail() -> None:
            with self._context.writing() as session:
                run = claims.lock(session, self.claim.run_id, self.claim.attempt)
                if fault is not None:
                    self._end_attempt(session, run, machine_fault(run, fault))
                    return
                if isinstance(error, resume.CannotStart):
                    self._end_attempt(session, run, AttemptOutcome(RunState.FAILED, str(error)))
                    return
                reason = f"supervisor error: {type(error).__name__}: {error}"
                self._end_attempt(session, run, AttemptOutcome(RunState.FAILED, reason, trace))

        try:
            self._retry(fail)
        except Superseded:
            log.warning("run.superseded")

    def _retry(self, action: Callable[[], T], *, interruptible: bool = False) -> T:
        """Retry an action for as long as it raises one of `TRANSIENT_ERRORS`: the database or the artifact
        store is unavailable, or any OSError, each of which counts as temporary.

        Args:
            action: what is tried.
            interruptible: for what comes before the engine has started, when another host could still take
                the run: ends at a request to stop, and raises a fault of this host's disk.

        Raises:
            Superseded: the run was lost meanwhile.
            _Interrupted: a stop was requested, if `interruptible`.
            OSError: this host's disk is full or broken, if `interruptible`.
        """

        def wait(error: Exception) -> None:
            if interruptible and isinstance(error, OSError) and machine_faults.errno_of(error):
                raise error  # nothing has started: another host can take the run
            is_of_host = interruptible and isinstance(error, OSError)
            if (is_of_host or isinstance(error, StoreUnavailable)) and self._backoff_s == 0.0:
                self._log(f"waiting: {error}")
            self._wake.wait(self._next_backoff_s(error))
            self._check(interruptible)

        self._check(interruptible)
        result = retry_until_available(action, wait)
        self._backoff_s = 0.0
        return result

    def _check(self, interruptible: bool) -> None:
        """Raise as `_retry` does if nothing more is to be tried."""
        if self._is_superseded:
            raise Superseded
        if interruptible and (self._requested or self._is_shutting_down):
            raise _Interrupted

    def _log(self, message: str, level: runs.LogLevel = "warning") -> None:
        """Append to the run's log, if the database is available."""
        with suppress(*TRANSIENT_ERRORS), self._context.writing() as session:
            claims.lock(session, self.claim.run_id, self.claim.attempt)
            runs.log(session, self.claim.run_id, self.claim.attempt, level, message)
            runs.bump_revision(session, self.claim.run_id)

    def _next_backoff_s(self, error: BaseException) -> float:
        self._backoff_s = min(max(1.0, self._backoff_s * 2), _MAX_BACKOFF_S)
        log.warning("supervisor.retrying", error=str(error)[:500], retry_in_s=self._backoff_s)
        return self._backoff_s
