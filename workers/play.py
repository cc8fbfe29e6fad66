"""Play sessions of a worker: each is an engine that a person's messages steer, beside the runs that train.

A session takes no slot for training. Its lease is renewed with the host's; its games are recorded while they
are played: a worker that dies loses at most their last second.
"""

import json
import queue
import shutil
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic

import structlog
from redis import Redis, RedisError

from backend.coordination.context import TRANSIENT_ERRORS, Context
from backend.platform.artifacts import StoreUnavailable
from backend.pubsub.bus import PLAY_PREFIX, PLAYER_EXPIRES_S, play_channel
from backend.replays.play import service as play
from backend.specs.play import Pause, PlaySetup
from backend.specs.recordings import FRAME, GAME_REPORT, REPORT, GamePlayed, GameStarted
from workers import resume
from workers.engine_process import ENGINE_COMMAND, EngineProcess
from workers.engine_server import EngineServer
from workers.gameplay import TIMEOUT_S, Gameplay

LEFT_S = 30.0
"""A session ends this long after its player's browser was last there."""
IDLE_S = 600.0
"""A session ends after this time without a message of its player."""
LAST_REPORT_S = 3.0
"""How long the engine of a session that ends may take to report its last decisions."""
_TICK_S = 0.25
_RETRY_S = 1.0
_LENGTH = struct.Struct("<H")
_PAUSE = Pause(type="pause", paused=True).model_dump_json().encode()

log = structlog.get_logger(__name__)


class PlaySessions:
    """The play sessions of a worker process. `start` it once, `stop` it once.

    Args:
        context: the worker's context.
        gameplay: publishes frames, and knows which players are there.
        environments: the environments that the host can run.
        command: the engine's command.
        server: forks the engines; None: they are started by the command.
        on_end: called when a session has ended.
    """

    def __init__(
        self,
        context: Context,
        gameplay: Gameplay,
        environments: Sequence[str],
        *,
        command: Sequence[str] = ENGINE_COMMAND,
        server: EngineServer | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = server
        self._context = context
        self._gameplay = gameplay
        self._environments = environments
        self._command = command
        self._on_end = on_end
        self._host = context.settings.host_name
        self._folder = context.settings.home_dir / "play" / self._host
        self._sessions: dict[str, PlayRunner] = {}
        self._redis = Redis.from_url(
            context.settings.redis, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="play", daemon=True)

    def start(self) -> None:
        """Start listening to players, and end and remove what a killed worker of this host has left."""
        shutil.rmtree(self._folder, ignore_errors=True)
        # If the database is away, the leases expire.
        with suppress(*TRANSIENT_ERRORS), self._context.writing() as session:
            play.end_of_host(session, self._host)
        self._thread.start()

    def begin_stop(self) -> None:
        """End every session; returns immediately."""
        self._stopping.set()
        for session in self._alive().values():
            session.cancel("the worker has been stopped; the game is kept up to then")

    def stop(self, timeout_s: float) -> None:
        """Wait until all have ended; give up after `timeout_s`."""
        self.begin_stop()
        deadline = monotonic() + timeout_s
        for session in self._alive().values():
            session.join(max(0.0, deadline - monotonic()))
        self._thread.join(max(0.0, deadline - monotonic()))
        if not self._thread.is_alive():
            self._redis.close()

    def reconcile(self, *, claims: bool) -> None:
        """Renew the leases, end the sessions that others have ended, and, with `claims`, claim new ones."""
        sessions = self._alive()
        settings = self._context.settings
        if sessions:
            with self._context.writing() as session:
                held = play.renew(session, self._host, list(sessions), settings.lease_s)
            for session_id in sessions.keys() - held:
                sessions[session_id].cancel("the session has ended")
        while claims and len(self._alive()) < settings.play_sessions and not self._stopping.is_set():
            if not self._claim():
                break

    def _alive(self) -> dict[str, "PlayRunner"]:
        self._sessions = {name: session for name, session in self._sessions.items() if session.is_alive()}
        return self._sessions

    def _claim(self) -> bool:
        with self._context.writing() as session:
            claimed = play.claim(session, self._host, self._context.settings.lease_s, self._environments)
            if claimed is None:
                return False
            session_id = claimed.id
            opened = play.opened(session, claimed)
        if opened is None:
            return True
        log.info("play.claimed", session=session_id, environment=opened.setup.environment)
        runner = PlayRunner(
            self._context,
            session_id,
            opened,
            self._gameplay,
            folder=self._folder,
            command=self._command,
            server=self._server,
            on_end=self._on_end,
        )
        self._sessions = self._alive() | {session_id: runner}
        runner.start()
        return True

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._redis.pubsub(ignore_subscribe_messages=True) as listener:  # type: ignore[no-untyped-call]
                    listener.psubscribe(play_channel("*"))
                    while not self._stopping.is_set():
                        message = listener.get_message(timeout=TIMEOUT_S / 2)
                        if message is None:
                            continue
                        session_id = message["channel"].decode().removeprefix(PLAY_PREFIX)
                        if (session := self._sessions.get(session_id)) is not None:
                            session.receive(message["data"])
            except RedisError as error:
                log.warning("redis.unavailable", operation="listen", error=str(error))
                self._stopping.wait(TIMEOUT_S)


class _Cancelled(Exception):
    """The session was ended before its engine started."""


class PlayRunner(threading.Thread):
    """Runs the engine of one session, publishes its frames and records its games."""

    def __init__(
        self,
        context: Context,
        session_id: str,
        opened: play.Opened,
        gameplay: Gameplay,
        *,
        folder: Path,
        command: Sequence[str],
        server: EngineServer | None,
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(name=f"play-{session_id}", daemon=True)
        self._context = context
        self._id = session_id
        self._opened = opened
        self._gameplay = gameplay
        self._parent = folder
        self._command = command
        self._server = server
        self._on_end = on_end
        self._host = context.settings.host_name
        self._process: EngineProcess | None = None
        self._reason: str | None = None
        self._reports: queue.Queue[GameStarted | GamePlayed | None] = queue.Queue()
        self._recording_id: str | None = None
        self._lost = threading.Event()
        self._message_at = monotonic()

    def cancel(self, reason: str) -> None:
        """End the session; returns immediately."""
        self._reason = self._reason or reason

    def receive(self, message: bytes) -> None:
        """Pass a message of the player on to the engine."""
        self._message_at = monotonic()
        if (process := self._process) is not None:
            process.send_bytes(message)

    def run(self) -> None:
        """Run the session to its end."""
        with structlog.contextvars.bound_contextvars(session=self._id):
            writer = threading.Thread(target=self._write_reports, name=f"{self.name}-writer", daemon=True)
            writer.start()
            reason = "the worker failed"
            try:
                reason = self._play()
            except Exception:
                log.exception("play.failed")
            finally:
                self._reports.put(None)
                writer.join()
                self._end(reason)
                self._on_end()

    def _play(self) -> str:
        self._parent.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=f"{self._id}-", dir=self._parent))
        try:
            try:
                if not self._fetch_checkpoint(folder):
                    return "the checkpoint of its agent is missing or damaged"
                setup = self._fetch_states(folder)
            except StoreUnavailable:
                log.exception("play.store_unavailable")
                return "the artifact store is unavailable: try again later"
            (folder / "spec.json").write_text(setup.model_dump_json())
            server = self._server
            try:
                if server is not None and server.why_not(setup.environment, self._check):
                    server = None
            except _Cancelled:
                return str(self._reason)
            process = EngineProcess(
                ["play", str(folder)],
                output=folder / "output.log",
                control=True,
                command=self._command,
                fork=server.fork if server else None,
            )
            try:
                self._process = process
                reason = self._watch(process)
                self._await_last_report(process)
                return reason
            finally:
                self._process = None
                process.reap()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _check(self) -> None:
        if self._reason is not None:
            raise _Cancelled

    def _fetch_checkpoint(self, folder: Path) -> bool:
        """Write the checkpoint of the session's agent; False if it is missing or damaged."""
        checkpoint = self._opened.checkpoint
        if checkpoint is None:
            return True
        run_id, file, sha256 = checkpoint.run_id, checkpoint.file, checkpoint.sha256
        return resume.fetch_into(self._context, run_id, "checkpoints", file, sha256, folder)

    def _fetch_states(self, folder: Path) -> PlaySetup:
        """Write the emulator states of the session's episode; return its setup.

        States that are lost are left out of it: they only save time.
        """
        setup, states = self._opened.setup, self._opened.states
        if states is None or setup.moment is None:
            return setup
        owner_id, file, sha256 = states.owner_id, states.file, states.sha256
        if resume.fetch_into(self._context, owner_id, "videos", file, sha256, folder):
            return setup
        return setup.model_copy(update={"moment": setup.moment.model_copy(update={"states": None})})

    def _watch(self, process: EngineProcess) -> str:
        """Pass on what the engine sends until the session ends; return why it does."""
        seen_at, player_is_away = monotonic(), False
        while True:
            process.wait_for_frames(_TICK_S)
            self._pass_on(process)
            now = monotonic()
            if self._gameplay.is_watched(self._id, PLAYER_EXPIRES_S):
                seen_at, player_is_away = now, False
            elif not player_is_away:  # also if the web process has died and could not pause the game
                player_is_away = True
                process.send_bytes(_PAUSE)
            if self._reason is not None:
                return self._reason
            if self._lost.is_set():
                return "the session has ended, or its game could not be recorded"
            if process.has_exited():
                self._pass_on(process)
                lines = process.output_tail().splitlines() or ["no output"]
                log.error("play.engine_died", output="\n".join(lines[-20:]))
                return f"the environment has failed: {lines[-1][:300]}"
            if now - seen_at > LEFT_S:
                return "its player has left"
            if now - self._message_at > IDLE_S:
                return f"nothing was pressed for {IDLE_S / 60:.0f} minutes"

    def _await_last_report(self, process: EngineProcess) -> None:
        """Have the engine report what it has played since its latest report, and exit."""
        process.end_commands()
        deadline = monotonic() + LAST_REPORT_S
        while not process.has_exited() and monotonic() < deadline and not self._lost.is_set():
            process.wait_for_frames(_TICK_S)
            self._pass_on(process)
        self._pass_on(process)

    def _pass_on(self, process: EngineProcess) -> None:
        latest: bytes | None = None
        for message in process.messages():
            if message[:1] == REPORT:
                self._reports.put(GAME_REPORT.validate_json(message[1:]))
            elif message[:1] == FRAME:
                latest = message[1:]
        if latest is not None:
            self._gameplay.publish(self._id, latest)

    def _write_reports(self) -> None:
        """Record what the engine reports; a database that is away delays neither frames nor keys."""
        while (report := self._reports.get()) is not None:
            while not self._lost.is_set():
                try:
                    if not self._write(report):
                        self._lost.set()
                    break
                except TRANSIENT_ERRORS as error:
                    log.warning("play.waiting", error=str(error)[:500])
                    self._lost.wait(_RETRY_S)

    def _write(self, report: GameStarted | GamePlayed) -> bool:
        with self._context.writing() as session:
            if isinstance(report, GameStarted):
                self._recording_id = play.start_game(session, self._id, self._host, report.game)
                return self._recording_id is not None
            assert self._recording_id is not None
            return play.record(session, self._id, self._host, self._recording_id, report.part)

    def _end(self, reason: str) -> None:
        # If even this cannot be written, the lease expires.
        with suppress(*TRANSIENT_ERRORS), self._context.writing() as session:
            reason = play.end(session, self._id, reason, host=self._host)
        log.info("play.ended", reason=reason)
        text = json.dumps({"ended": reason}).encode()
        self._gameplay.publish(self._id, _LENGTH.pack(len(text)) + text)
