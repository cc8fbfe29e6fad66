"""One attempt at one run: a thread that starts the engine, records what it says, and settles its end.

The thread lives as long as the engine: the kernel kills the engine with it.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TypeVar

import structlog
from sqlalchemy.orm import Session

from backend.db import Run
from backend.specs.commands import Settings, Stop, Watch
from backend.specs.events import Ended
from backend.specs.states import RunState
from workers import claims, recorder, resume
from workers.claims import Claim, Superseded
from workers.context import AWAY, Context
from workers.engine_process import ENGINE, Birthmark, EngineProcess
from workers.gameplay import Gameplay
from workers.recorder import Recorder
from workers.verdict import judge

TICK_S = 0.2
PICTURE_TICK_S = 0.05
_PICTURES_A_TICK = 4
"""More than this many at once come too late to be looked at."""
RECORD_INTERVAL_S = 0.5
"""Least time between two batches, unless the log has grown by more than a batch takes."""

STOP_PATIENCE_S = 20.0
"""How long an engine may take over a last checkpoint before it is killed."""
HAND_BACK_PATIENCE_S = 6.0
"""The same while the worker shuts down, which must be over within 10 s."""

_MAX_BACKOFF_S = 10.0

log = structlog.get_logger(__name__)
T = TypeVar("T")


class _Interrupted(Exception):
    """Someone wants the run to end before its engine has begun."""


class Supervisor(threading.Thread):
    """Sees one claim through. `start` it; every other method may be called from any thread.

    Args:
        context: the worker's.
        claim: what was won.
        gameplay: where pictures of the training go.
        engine: the engine's command.
        on_end: called when all is over and the slot is free.
    """

    def __init__(
        self,
        context: Context,
        claim: Claim,
        *,
        gameplay: Gameplay,
        engine: Sequence[str] = ENGINE,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name=f"run-{claim.run_id}", daemon=True)
        self.claim = claim
        self._context = context
        self._gameplay = gameplay
        self._watched = False
        self._engine = engine
        self._on_end = on_end
        self._run_dir = context.run_dir(claim.run_id)
        self._attempt_dir = self._run_dir / "attempts" / str(claim.attempt)
        self._process: EngineProcess | None = None
        self._wake = threading.Event()
        self._wish: str | None = None
        self._settings: Sequence[Settings] = ()
        self._settings_version = 0
        self._handing_back = False
        self._superseded = False
        self._asked_at: float | None = None
        self._out_of_patience = False
        self._record_at = 0.0
        self._backoff_s = 0.0

    def tell(self, wish: str | None, settings: Sequence[Settings] = ()) -> None:
        """What is wanted of the run by now.

        Args:
            wish: `stop` or `kill`, where someone wants it to end.
            settings: the changes to its settings that its engine has not answered yet, the oldest first.
        """
        self._settings = settings
        if wish != self._wish or settings:
            self._wish = wish
            self._wake.set()

    def hand_back(self) -> None:
        """The worker shuts down: save a checkpoint, end, and put the run back into the queue."""
        self._handing_back = True
        self._wake.set()

    def lose(self) -> None:
        """The attempt holds the run no more: end the engine, write nothing."""
        self._superseded = True
        self._wake.set()

    def kill(self) -> None:
        """The worker is out of time: end the engine now."""
        if self._process is not None:
            self._process.kill()

    def rss_bytes(self) -> int:
        """Memory the engine holds now."""
        return self._process.rss_bytes() if self._process is not None else 0

    def run(self) -> None:
        """Supervise until the attempt is over."""
        with structlog.contextvars.bound_contextvars(run_id=self.claim.run_id, attempt=self.claim.attempt):
            try:
                self._supervise()
            except Superseded:
                log.warning("run.superseded")
            except Exception as error:
                log.exception("run.supervisor_error")
                self._give_up(error, traceback.format_exc())
            finally:
                if self._process is not None:
                    self._process.reap()
                self._on_end()

    def _supervise(self) -> None:
        mine = Recorder(self._context, self.claim.run_id, self.claim.attempt)
        try:
            checkpoint = self._insist(partial(resume.prepare, self._context, self.claim), interruptible=True)
        except _Interrupted:
            self._insist(partial(mine.conclude, self._settle))
            return
        self._process = self._start_engine(checkpoint)
        log.info("engine.started", pid=self._process.pid, resumes=checkpoint)
        while not self._process.has_ended():
            self._wake.wait(PICTURE_TICK_S if self._watched else TICK_S)
            self._wake.clear()
            self._show()
            self._record(mine)
            self._steer(mine)
        self._process.reap()
        self._insist(partial(mine.conclude, self._settle))

    def _start_engine(self, checkpoint: str | None) -> EngineProcess:
        self._attempt_dir.mkdir(parents=True, exist_ok=True)
        arguments = ["train", str(self._run_dir), "--attempt", str(self.claim.attempt)]
        if checkpoint is not None:
            arguments += ["--resume", checkpoint]
        process = EngineProcess(
            arguments, output=self._attempt_dir / "stderr.log", control=True, engine=self._engine
        )
        Birthmark(self._attempt_dir).write(process.pid)
        return process

    def _show(self) -> None:
        """Have the engine send pictures while someone watches, and pass them on."""
        assert self._process is not None
        watched = self._gameplay.is_watched(self.claim.run_id)
        if watched != self._watched:
            self._process.send(Watch(on=watched))
            self._watched = watched
        if watched:
            for picture in deque(self._process.pictures(), maxlen=_PICTURES_A_TICK):
                self._gameplay.show(self.claim.run_id, picture)

    def _record(self, mine: Recorder) -> None:
        if monotonic() < self._record_at:
            return
        try:
            n_bytes = mine.record()
            self._backoff_s = 0.0
            wait_s = RECORD_INTERVAL_S if n_bytes < recorder.MAX_BATCH_BYTES else 0.0
        except AWAY as error:
            wait_s = self._back_off(error)
        self._record_at = monotonic() + wait_s

    def _steer(self, mine: Recorder) -> None:
        """Pass wishes on to the engine, and see that they are obeyed in time."""
        assert self._process is not None
        if self._superseded:
            raise Superseded
        for settings in self._settings:
            if settings.version > self._settings_version:
                self._process.send(settings)
                self._settings_version = settings.version
        now = monotonic()
        if self._asked_at is None and (self._handing_back or self._wish == "stop"):
            reason = "asked to stop" if self._wish else "its worker shuts down"
            self._process.send(Stop(reason=reason))
            self._asked_at = now
        if self._asked_at is None and mine.ended:
            # It has said its last word: all that is left for it to do is to go.
            self._asked_at = now
        patience_s = HAND_BACK_PATIENCE_S if self._handing_back else STOP_PATIENCE_S
        if self._asked_at is not None and now - self._asked_at > patience_s:
            self._out_of_patience = True
        if self._wish == "kill" or self._out_of_patience:
            self._process.kill()

    def _settle(self, session: Session, run: Run, last_word: Ended | None) -> None:
        process = self._process
        verdict = judge(
            run,
            last_word,
            process.returncode if process else None,
            handing_back=self._handing_back,
            out_of_patience=self._out_of_patience,
            output_tail=process.output_tail() if process else "",
        )
        if self._handing_back and verdict.state == RunState.QUEUED:
            # Shutting workers down is no fault of the run's.
            run.attempts_without_checkpoint = max(0, run.attempts_without_checkpoint - 1)
        claims.release(session, run, verdict.state, verdict.reason, verdict.error)
        log.info("run.settled", state=verdict.state.value, reason=verdict.reason)

    def _give_up(self, error: Exception, trace: str) -> None:
        if self._process is not None:
            self._process.reap()

        def fail() -> None:
            with self._context.writing() as session:
                run = claims.held(session, self.claim.run_id, self.claim.attempt)
                reason = f"an error of the supervisor's: {type(error).__name__}: {error}"
                claims.release(session, run, RunState.FAILED, reason, trace)

        try:
            self._insist(fail)
        except Superseded:
            log.warning("run.superseded")

    def _insist(self, action: Callable[[], T], *, interruptible: bool = False) -> T:
        """Do something that may have to wait for the database or the artifact store.

        Raises:
            Superseded: the run was lost meanwhile.
            _Interrupted: someone wants the run to end, and `interruptible`.
        """
        while True:
            if self._superseded:
                raise Superseded
            if interruptible and (self._wish or self._handing_back):
                raise _Interrupted
            try:
                result = action()
                self._backoff_s = 0.0
                return result
            except AWAY as error:
                self._wake.wait(self._back_off(error))
                self._wake.clear()

    def _back_off(self, error: BaseException) -> float:
        self._backoff_s = min(max(1.0, self._backoff_s * 2), _MAX_BACKOFF_S)
        log.warning("recorder.waits", error=str(error)[:500], again_in_s=self._backoff_s)
        return self._backoff_s
