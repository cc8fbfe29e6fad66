"""Child processes that are restarted when they die, and asked to end when their parent dies.

Hand-written, because process managers such as Honcho end all processes when one dies, and leave them running
when they are killed themselves.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic

import structlog

from workers.engine.processes.child import die_with_parent

log = structlog.get_logger(__name__)

_MAX_BACKOFF_S = 10.0
_EARLY_EXIT_S = 10.0
_HEALTH_INTERVAL_S = 5.0
_MAX_UNHEALTHY_STEP_S = 2 * _HEALTH_INTERVAL_S
"""Maximum that one failed check adds to the unhealthy time: the previous one may be long ago, as after a slow
start."""
MAX_LOG_BYTES = 10 * 2**20
"""A larger log is rotated; one former log is kept."""


class ServiceProcess:
    """One process of the installation. Call `check` regularly, from the thread that created it: the
    kernel ends the process with the thread that started it.

    Args:
        name: name of the process for logs and messages.
        command: command line.
        environment: the process's environment variables.
        log_file: file for the process's output; a large one is rotated.
        healthy: health check; a child for which it is False for `unhealthy_timeout_s` is killed. The time
            that the child waits for a CPU does not count: on a loaded machine it is slow, not hanging.
        unhealthy_timeout_s: how long the health check may fail.
        pass_fds: file descriptors to inherit.
        on_restart: called after each restart, with the name and why the former process has ended.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_file: Path,
        healthy: Callable[[], bool] = lambda: True,
        unhealthy_timeout_s: float = 10.0,
        pass_fds: Sequence[int] = (),
        on_restart: Callable[[str, str], None] = lambda name, reason: None,
    ) -> None:
        self.name = name
        self.log_file = log_file
        self._command = list(command)
        self._environment = dict(environment)
        self._healthy = healthy
        self._unhealthy_timeout_s = unhealthy_timeout_s
        self._pass_fds = tuple(pass_fds)
        self._on_restart = on_restart
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._unhealthy_s = 0.0
        self._checked_at = 0.0
        self._cpu_waits_s: Mapping[str, float] = {}
        self._early_exits = 0
        self._restart_not_before = 0.0
        self._rotate_log()

    def start(self) -> None:
        """Start the process."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=self._pass_fds,
                # Control-C at the terminal reaches only the parent, which then stops its children in order.
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
            )
        self._started_at = self._checked_at = monotonic()
        self._unhealthy_s = 0.0
        self._cpu_waits_s = {}

    @property
    def pid(self) -> int | None:
        """Process id; None unless it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def exit_status(self) -> int | None:
        """Exit status of the last process; None before the first one and while one runs."""
        return self._process.poll() if self._process else None

    def check(self) -> None:
        """Kill it if it hangs; restart it if it died, at first immediately, then with growing delays. A check
        or a start that fails is logged and tried again: what it lacks may be back then."""
        try:
            self._check()
        except Exception as error:
            log.warning("child.not_checked", child=self.name, error=repr(error))

    def _check(self) -> None:
        now = monotonic()
        if self.pid is not None:
            if now >= self._checked_at + _HEALTH_INTERVAL_S:
                self._rotate_log()
                self._check_health(self.pid)
            return
        # No restart is scheduled for this death yet: `_restart_not_before` is that of an earlier one.
        has_new_death = self._restart_not_before < self._started_at
        if has_new_death:
            early = now - self._started_at < _EARLY_EXIT_S
            self._early_exits = self._early_exits + 1 if early else 0
            wait_s = self._delay_restart(now)
            log.warning("child.died", child=self.name, status=self.exit_status, restart_in_s=wait_s)
        if now >= self._restart_not_before:
            hung = self._unhealthy_s > self._unhealthy_timeout_s
            reason = "it did not respond" if hung else f"it has ended with status {self.exit_status}"
            try:
                self.start()
            except Exception:
                self._early_exits += 1
                self._delay_restart(now)
                raise
            self._on_restart(self.name, reason)

    def _delay_restart(self, now: float) -> float:
        n = min(self._early_exits, 30)
        wait_s = min(2.0 ** (n - 1), _MAX_BACKOFF_S) if n > 1 else 0.0
        self._restart_not_before = now + wait_s
        return wait_s

    def _check_health(self, pid: int) -> None:
        healthy = self._healthy()
        now, waits_s = monotonic(), cpu_waits_s(pid)
        # Of the thread that waited longest, which may be the one that answers.
        waited_s = max(
            (wait_s - self._cpu_waits_s.get(thread, 0.0) for thread, wait_s in waits_s.items()), default=0.0
        )
        step_s = min(max(0.0, now - self._checked_at - waited_s), _MAX_UNHEALTHY_STEP_S)
        self._unhealthy_s = 0.0 if healthy else self._unhealthy_s + step_s
        self._checked_at, self._cpu_waits_s = now, waits_s
        if self._unhealthy_s > self._unhealthy_timeout_s:
            log.warning("child.hung", child=self.name)
            self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def wait(self, timeout_s: float) -> None:
        """Wait until it has exited; kill it after `timeout_s`."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout=max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            log.warning("child.killed", child=self.name)
            self._signal(signal.SIGKILL)
            self._process.wait()

    def last_lines(self, n: int = 15) -> str:
        """The last lines of its output."""
        text = self.log_file.read_bytes()[-8192:].decode(errors="replace") if self.log_file.exists() else ""
        return "\n".join(text.splitlines()[-n:])

    def _rotate_log(self) -> None:
        # Copied and emptied: the child keeps the file open, for appending. Lines written in between are lost.
        with suppress(OSError):
            if self.log_file.stat().st_size > MAX_LOG_BYTES:
                shutil.copyfile(self.log_file, self.log_file.with_suffix(".1.log"))
                os.truncate(self.log_file, 0)

    def _signal(self, number: int) -> None:
        if self.pid is not None and self._process is not None:
            # With the processes that it started, unless they left its process group.
            os.killpg(self._process.pid, number)


def cpu_waits_s(pid: int) -> dict[str, float]:
    """Total time that each thread of a process has been runnable but waiting for a CPU.

    From the kernel (proc(5), `schedstat`); empty if it does not provide it.
    """
    waits_s = {}
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, IndexError):
            waits_s[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return waits_s
