"""An engine as a child process: started, told to stop, killed with all it started."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from backend.specs.commands import COMMAND, AnyCommand

ENGINE = (sys.executable, "-m", "workers.engine")
NICENESS = 10
"""Training leaves the processor to the page whenever the page wants it."""
LEAST_PRIORITY = 19

MAX_PICTURE_BYTES = 2**20

_STDERR_TAIL_BYTES = 8192


class EngineProcess:
    """A child in a session of its own, joined by a socket pair whose end it must not outlive.

    Start it from a thread that lives as long as it: the kernel kills it with that thread.

    Args:
        arguments: what follows the engine's command.
        output: file that takes its standard output and error; only the error where `stdout` is given.
        stdout: file that takes its standard output.
        control: join it by a socket pair, named to it as `--control-fd`.
        engine: the engine's command.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        output: Path,
        stdout: Path | None = None,
        control: bool = False,
        engine: Sequence[str] = ENGINE,
    ) -> None:
        self._output = output
        output.parent.mkdir(parents=True, exist_ok=True)
        # Whole messages: commands go in, pictures come out.
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        command = [*engine, *arguments, "--parent", str(os.getpid())]
        if control:
            command += ["--control-fd", str(theirs.fileno())]
        with theirs, output.open("ab") as error, (stdout or output).open("ab") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
                pass_fds=[theirs.fileno()] if control else [],
                start_new_session=True,
            )
        niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, LEAST_PRIORITY)
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, self.pid, niceness)
        # Where Linux groups processes by session, only the group's own niceness counts.
        with suppress(OSError):
            Path(f"/proc/{self.pid}/autogroup").write_text(str(niceness))

    @property
    def pid(self) -> int:
        """Its process id, and its group's."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, negative for a signal; none until `reap`."""
        return self._process.returncode

    def has_ended(self) -> bool:
        """Whether it has ended; it is not reaped, so that its group's id stays its own."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def send(self, command: AnyCommand) -> None:
        """Say something to it; harmless when it no longer listens."""
        with suppress(OSError):
            self._control.send(COMMAND.dump_json(command) + b"\n")

    def pictures(self) -> Iterator[bytes]:
        """The pictures it has sent since the last call."""
        with suppress(OSError):
            while picture := self._control.recv(MAX_PICTURE_BYTES):
                yield picture

    def kill(self) -> None:
        """Kill it, its group and every descendant, wherever they have put themselves."""
        kill_tree(self.pid)

    def reap(self) -> int:
        """Kill what it left running, wait for its end, close the socket. Gives the exit status."""
        if self._process.returncode is None:
            if self.has_ended():
                _kill_group(self.pid)
            else:
                self.kill()
        self._control.close()
        return self._process.wait()

    def rss_bytes(self) -> int:
        """Memory it and its descendants hold now."""
        try:
            family = [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]
        except psutil.Error:
            return 0
        total = 0
        for process in family:
            with suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def output_tail(self) -> str:
        """The end of what it wrote to its output file."""
        with self._output.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _STDERR_TAIL_BYTES))
            return file.read().decode(errors="replace").strip()


def kill_tree(pid: int) -> None:
    """Kill a process group's leader, the group, and all descendants."""
    descendants: list[psutil.Process] = []
    with suppress(psutil.Error):
        descendants = psutil.Process(pid).children(recursive=True)
    _kill_group(pid)
    for process in descendants:
        with suppress(psutil.Error):
            process.kill()


def _await_end(pid: int, timeout_s: float) -> None:
    """Wait for a process to end without reaping it: it may be the child of another supervisor here."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            end = select.poll()
            end.register(descriptor, select.POLLIN)
            end.poll(timeout_s * 1000)
        finally:
            os.close(descriptor)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class Birthmark:
    """A file that names the process of an attempt, so that a later one can make sure it is gone."""

    def __init__(self, attempt_folder: Path) -> None:
        self._path = attempt_folder / "engine.json"

    def write(self, pid: int) -> None:
        """Note the process."""
        with suppress(psutil.Error):
            born = psutil.Process(pid).create_time()
            self._path.write_text(json.dumps({"pid": pid, "created": born}))

    def kill_survivor(self) -> bool:
        """Kill the noted process and all it started, if it still lives. Says whether it did."""
        try:
            noted = json.loads(self._path.read_text())
            process = psutil.Process(noted["pid"])
            if abs(process.create_time() - noted["created"]) > 1.0:
                return False
        except (OSError, ValueError, KeyError, psutil.Error):
            return False
        kill_tree(process.pid)
        _await_end(process.pid, 10)
        return True
