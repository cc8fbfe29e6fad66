"""Child processes that are started again when they die and never outlive their parent."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic

import structlog

from workers.engine.lifeline import die_with_parent

log = structlog.get_logger(__name__)

_MAX_BACKOFF_S = 10.0
_QUICK_S = 10.0
_ASK_INTERVAL_S = 5.0
_MAX_LOG_BYTES = 10 * 2**20


class Child:
    """One process of the installation. Call `tend` now and then from the thread that made it.

    Args:
        name: for people.
        command: what to run.
        environment: its environment variables.
        log_file: where its output goes; a large one is put aside when the child is made.
        healthy: told apart from dead by asking; a child that answers False for `patience_s` is killed. The
            time that it waits for a processor is not counted: on a crowded machine it is slow, not hanging.
        patience_s: how long it may leave questions unanswered.
        pass_fds: file descriptors it inherits.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_file: Path,
        healthy: Callable[[], bool] = lambda: True,
        patience_s: float = 10.0,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.log_file = log_file
        self._command = list(command)
        self._environment = dict(environment)
        self._healthy = healthy
        self._patience_s = patience_s
        self._pass_fds = tuple(pass_fds)
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._silent_s = 0.0
        self._asked_at = 0.0
        self._waits_s: Mapping[str, float] = {}
        self._quick_deaths = 0
        self._start_at = 0.0
        log_file.parent.mkdir(parents=True, exist_ok=True)
        if log_file.exists() and log_file.stat().st_size > _MAX_LOG_BYTES:
            log_file.replace(log_file.with_suffix(".1.log"))

    def start(self) -> None:
        """Start the process."""
        with self.log_file.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=self._pass_fds,
                # Control-C at the terminal reaches the parent alone, which then ends its children in order.
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
            )
        self._started_at = self._asked_at = monotonic()
        self._silent_s = 0.0
        self._waits_s = {}

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def exit_status(self) -> int | None:
        """How its present process ended; none while it runs."""
        return self._process.poll() if self._process else None

    def tend(self) -> None:
        """Kill it where it hangs; start it again where it died, at once at first, then ever less eagerly."""
        now = monotonic()
        if self.pid is not None:
            if now >= self._asked_at + _ASK_INTERVAL_S:
                self._ask(self.pid)
            return
        if self._start_at < self._started_at:
            quick = now - self._started_at < _QUICK_S
            self._quick_deaths = self._quick_deaths + 1 if quick else 0
            wait_s = min(2.0 ** (self._quick_deaths - 1), _MAX_BACKOFF_S) if self._quick_deaths > 1 else 0.0
            self._start_at = now + wait_s
            log.warning("child.died", child=self.name, status=self.exit_status, again_in_s=wait_s)
        if now >= self._start_at:
            self.start()

    def _ask(self, pid: int) -> None:
        healthy = self._healthy()
        now, waits_s = monotonic(), processor_waits_s(pid)
        waited_s = max(
            (wait_s - self._waits_s.get(thread, 0.0) for thread, wait_s in waits_s.items()), default=0.0
        )
        self._silent_s = 0.0 if healthy else self._silent_s + max(0.0, now - self._asked_at - waited_s)
        self._asked_at, self._waits_s = now, waits_s
        if self._silent_s > self._patience_s:
            log.warning("child.hangs", child=self.name)
            self._signal(signal.SIGKILL)

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def end(self, timeout_s: float) -> None:
        """Wait until it has ended; kill it after `timeout_s`."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout=max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            log.warning("child.killed", child=self.name)
            self._signal(signal.SIGKILL)
            self._process.wait()

    def last_lines(self, n: int = 15) -> str:
        """The end of its output."""
        text = self.log_file.read_bytes()[-8192:].decode(errors="replace") if self.log_file.exists() else ""
        return "\n".join(text.splitlines()[-n:])

    def _signal(self, number: int) -> None:
        if self.pid is not None and self._process is not None:
            # The whole session: whatever it started goes with it.
            os.killpg(self._process.pid, number)


def processor_waits_s(pid: int) -> dict[str, float]:
    """How long each thread of a process has been ready to go on with no processor to go on with, in all.

    By the kernel's account (proc(5), `schedstat`); empty where it keeps none.
    """
    waits_s = {}
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, IndexError):
            waits_s[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return waits_s
