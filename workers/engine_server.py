"""The worker's side of its engine server: a process that has loaded what engines need, and forks them.

An engine that is started as a process of its own imports PyTorch and loads kernels for seconds of processor
time before it trains; a forked one has all of it at once, and shares its memory. The server's own side is
`workers.engine.server`. It is started when an engine is first needed, and anew when it has died, or when what
it has loaded is no longer what is installed. When it ends, its engines continue: the worker is their parent.
"""

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

import psutil
import structlog

from backend import specs
from backend.specs.run import is_custom
from workers import engine
from workers.engine.processes.child import adopting_orphans
from workers.engine_process import ENGINE_COMMAND, memory_bytes

REPLY_TIMEOUT_S = 60.0
"""How long a fork may take. It takes milliseconds, but the machine may be out of memory, or suspended."""

_TICK_S = 0.2

_PADDING = " " * 1024
"""Room for the command line that an engine writes over the server's."""
_MAX_REPLY_BYTES = 64

log = structlog.get_logger(__name__)


class EngineServerError(Exception):
    """The engine server does not start; the message is the reason."""


class EngineServer:
    """The engine server of a worker; its methods may be called from any thread."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._has_loaded = False
        self._is_stopped = False
        self._started_at = 0.0
        self._loads: dict[str, object] = {}

    @property
    def pid(self) -> int | None:
        """Its process id; None while there is no such process."""
        return None if self._process is None else self._process.pid

    def memory_bytes(self) -> int:
        """Its proportional memory; 0 while there is no such process."""
        return 0 if (pid := self.pid) is None else memory_bytes(pid)

    def is_ready(self, timeout_s: float) -> bool:
        """Whether it can fork an engine; it is started if there is none, or if its code is outdated.

        Args:
            timeout_s: how long to wait until it has loaded everything.

        Raises:
            EngineServerError: it cannot be started, or has ended while it loaded.
            OSError: no process can be started now.
        """
        with self._lock:
            if self._is_stopped:
                return False
            loads = loads_now()
            has_died = self._has_loaded and self._process is not None and self._process.poll() is not None
            if self._process is None or has_died or loads != self._loads:
                self._stop()
                self._start(loads)
            assert self._process is not None
            assert self._requests is not None
            if self._has_loaded:
                return True
            if not select.select([self._requests], [], [], timeout_s)[0] or self._is_stopped:
                return False
            if not self._receive():
                status = self._process.wait()
                self._stop()
                raise EngineServerError(f"it ended with status {status}, see the worker's log")
            self._has_loaded = True
            took_s = round(monotonic() - self._started_at, 1)
            log.info("engine_server.ready", pid=self._process.pid, took_s=took_s)
            return True

    def why_not(self, environment: str, check: Callable[[], None]) -> str | None:
        """Wait until it can fork an engine; return why it cannot, if so.

        Args:
            environment: what the engine plays.
            check: called while the server loads; raises to end the wait.

        Raises:
            OSError: no process can be started now.
        """
        if is_custom(environment):
            return f"{environment} is a custom environment"
        try:
            while not self.is_ready(_TICK_S):
                check()
        except EngineServerError as error:
            return f"the engine server does not start: {error}"
        return None

    def fork(self, arguments: Sequence[str], descriptors: Sequence[int]) -> int:
        """Fork an engine that is a child of this process, and return its process id.

        Args:
            arguments: those of `python -m workers.engine`.
            descriptors: of its standard output, of its standard error, and of its control socket if it has
                one.

        Raises:
            OSError: it cannot fork now, or it has died.
        """
        with self._lock:
            if self._requests is None or not self._has_loaded:
                raise ConnectionError("the engine server has ended")
            with adopting_orphans():
                try:
                    socket.send_fds(self._requests, [json.dumps(arguments).encode()], descriptors)
                    is_answered = select.select([self._requests], [], [], REPLY_TIMEOUT_S)[0]
                    reply = self._receive() if is_answered else b""
                except OSError as error:
                    self._stop()
                    raise ConnectionError(f"the engine server has ended: {error}") from error
            _reap_orphans()
            if not reply:
                self._stop()
                raise ConnectionError("the engine server has ended, or does not answer")
            if (answer := int(reply)) < 0:
                raise OSError(-answer, f"no engine can be forked: {os.strerror(-answer)}")
            return answer

    def stop(self) -> None:
        """End it for good; engines continue."""
        self._is_stopped = True
        if (requests := self._requests) is not None:
            with suppress(OSError):
                requests.shutdown(socket.SHUT_RDWR)  # whoever waits for it, with the lock, need not any more
        with self._lock:
            self._stop()

    def _start(self, loads: dict[str, object]) -> None:
        try:
            with adopting_orphans():
                pass
        except OSError as error:
            raise EngineServerError(str(error)) from error
        # Keeps message boundaries.
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*ENGINE_COMMAND, "serve", "--requests", str(theirs.fileno()), _PADDING],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=os.environ,  # otherwise with what libraries have set past Python
            )
        self._started_at, self._loads = monotonic(), loads

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()  # it has nothing to save
            self._process.wait()
        if self._requests is not None:
            self._requests.close()
        self._process = self._requests = None
        self._has_loaded = False

    def _receive(self) -> bytes:
        assert self._requests is not None
        with suppress(ConnectionResetError):
            return self._requests.recv(_MAX_REPLY_BYTES)
        return b""


def _reap_orphans() -> None:
    """Reap what other engines left behind, and ended, while this process adopted orphans.

    They are neither of its own session nor leaders of theirs; what it has started is one or the other.
    """
    for child in psutil.Process().children():
        with suppress(ProcessLookupError, ChildProcessError):
            if os.getsid(child.pid) not in (child.pid, os.getsid(0)):
                os.waitpid(child.pid, os.WNOHANG)


def loads_now() -> dict[str, object]:
    """What decides what a process loads that starts now: environment variables, and when packages were last
    installed or removed, and each of our own files changed."""
    paths = [path for path in sys.path if path.endswith("-packages")]
    for package in (engine, specs):
        paths += map(str, Path(package.__path__[0]).rglob("*.py"))
    loads: dict[str, object] = dict(os.environ)
    for path in paths:
        with suppress(OSError):  # it has just been removed
            loads[path] = os.stat(path).st_mtime_ns
    return loads
