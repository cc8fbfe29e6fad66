"""An engine as a child process: start, send commands, kill with all its descendants."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from backend.specs.commands import COMMAND, AnyCommand

ENGINE_COMMAND = (sys.executable, "-m", "workers.engine")
MAX_NICENESS = 19

MAX_FRAME_BYTES = 2**20

_STDERR_TAIL_BYTES = 8192

MAX_OUTPUT_BYTES = 16 * 2**20
"""Of a longer output file only the end is needed."""


class EngineProcess:
    """A child process in its own session, connected by a socket pair.

    Start it from a thread that lives as long: the kernel kills it when that thread ends. A forked one is
    killed when this process ends.

    Args:
        arguments: appended to the engine's command.
        output: file for its standard output and error; only for the error if `stdout` is given.
        stdout: file for its standard output.
        control: pass it one end of the socket pair as `--control-fd`.
        command: the engine's command.
        fork: starts it in place of `command`, from its arguments and descriptors: `EngineServer.fork`.
        niceness: how far it yields a contended CPU, relative to its parent (nice(2)).
        environment: environment variables in addition to this process's; a forked one has the server's.
        inherits: whether it has those of this process; otherwise it has none but `environment`.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        output: Path,
        stdout: Path | None = None,
        control: bool = False,
        command: Sequence[str] = ENGINE_COMMAND,
        fork: Callable[[Sequence[str], Sequence[int]], int] | None = None,
        niceness: int = 0,
        environment: Mapping[str, str] | None = None,
        inherits: bool = True,
    ) -> None:
        self._output = output
        output.parent.mkdir(parents=True, exist_ok=True)
        # Keeps message boundaries: commands go in, frames come out.
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        arguments = [*arguments, "--parent", str(os.getpid())]
        pass_fds = [theirs.fileno()] if control else []
        self._process: subprocess.Popen[bytes] | _ForkedProcess
        try:
            with theirs, output.open("ab") as error, (stdout or output).open("ab") as out:
                if fork is not None:
                    descriptors = [out.fileno(), error.fileno(), *pass_fds]
                    self._process = _ForkedProcess(fork(arguments, descriptors))
                else:
                    self._process = subprocess.Popen(
                        [*command, *arguments, *(["--control-fd", str(theirs.fileno())] if control else [])],
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=error,
                        pass_fds=pass_fds,
                        start_new_session=True,
                        env={**(os.environ if inherits else {}), **(environment or {})},
                    )
        except BaseException:
            self._control.close()
            raise
        self._exit = -1
        try:
            self._exit = os.pidfd_open(self.pid)
            if niceness:
                self.yield_cpu(niceness)
        except BaseException:
            self.reap()
            raise

    @property
    def pid(self) -> int:
        """Its process id, and its group's."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None until `reap`."""
        return self._process.returncode

    def yield_cpu(self, niceness: int) -> None:
        """Have it and its descendants, whatever their group, yield a contended CPU.

        Args:
            niceness: how far, relative to this process (nice(2)).
        """
        niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + niceness, MAX_NICENESS)
        # First, because what it starts from now on inherits its niceness.
        _set_niceness(self.pid, self.pid, niceness)
        places = {(self.pid, self.pid)}
        with suppress(psutil.Error):
            for child in psutil.Process(self.pid).children(recursive=True):
                with suppress(ProcessLookupError):
                    places.add((os.getpgid(child.pid), os.getsid(child.pid)))
        for group, session in places - {(self.pid, self.pid)}:
            _set_niceness(group, session, niceness)

    def has_exited(self) -> bool:
        """Whether it has exited; it is not reaped, so that its group id is not reused."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait_for_exit(self, timeout_s: float, wake: int | None = None) -> None:
        """Wait until it has exited, or the time is over.

        Args:
            timeout_s: how long at most.
            wake: a descriptor; the wait ends too if it can be read.
        """
        poller = select.poll()
        for descriptor in (self._exit, wake):
            if descriptor is not None:
                poller.register(descriptor, select.POLLIN)
        poller.poll(1000 * timeout_s)

    def send(self, command: AnyCommand) -> None:
        """Send a command; ignored if the engine has exited."""
        self.send_bytes(COMMAND.dump_json(command) + b"\n")

    def send_bytes(self, message: bytes) -> None:
        """Send a message; ignored if the engine has exited."""
        with suppress(OSError):
            self._control.send(message)

    def wait_for_frames(self, timeout_s: float) -> None:
        """Wait until `messages` has one, the engine has exited, or the time is over."""
        with suppress(ValueError):  # closed
            select.select([self._control], [], [], timeout_s)

    def messages(self) -> Iterator[bytes]:
        """The messages received since the last call: frames, and what else the engine sends."""
        with suppress(OSError):
            while frame := self._control.recv(MAX_FRAME_BYTES):
                yield frame

    def end_commands(self) -> None:
        """Signal that no command will follow; the engine can still send frames."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def terminate(self) -> None:
        """Send it SIGTERM; its descendants are left to it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, its group and every descendant in any group, unless it has been reaped."""
        if self._process.returncode is None:
            kill_tree(self.pid)

    def reap(self) -> int:
        """Kill what it left running in its group, or it and all its descendants if it still runs; wait for
        its exit, close the socket, and return the exit status."""
        if self._process.returncode is None:
            if self.has_exited():
                _kill_group(self.pid)
            else:
                self.kill()
        self._control.close()
        if self._exit >= 0:
            os.close(self._exit)
            self._exit = -1
        return self._process.wait()

    def bound_output(self) -> bool:
        """Cut its output file to the end if it is longer than `MAX_OUTPUT_BYTES`, and return whether it was:
        an environment may print at each step. The process always appends at the file's present end."""
        with suppress(OSError), self._output.open("ab") as file:
            if file.tell() > MAX_OUTPUT_BYTES:
                end = self.output_tail()
                file.truncate(0)
                file.write(end.encode() + b"\n")
                return True
        return False

    def output_tail(self) -> str:
        """The end of its output file; empty if that cannot be read, for example because it was removed."""
        try:
            with self._output.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _STDERR_TAIL_BYTES))
                return file.read().decode(errors="replace").strip()
        except OSError:
            return ""


class WakeUp:
    """Ends a wait, from any thread, also one for an engine's exit."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __del__(self) -> None:
        """Close the descriptor: nothing can set it any more."""
        os.close(self._descriptor)

    def fileno(self) -> int:
        """What can be read once it is set."""
        return self._descriptor

    def set(self) -> None:
        """End the present wait, or the next one."""
        os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        """Have the next wait wait."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)

    def wait(self, timeout_s: float) -> None:
        """Wait until it is set, or the time is over, and clear it."""
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        poller.poll(1000 * timeout_s)
        self.clear()


class _ForkedProcess:
    """A child that this process has not started itself: what `EngineProcess` needs of a `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._waiting = threading.Lock()

    def wait(self) -> int:
        with self._waiting:  # only one thread can reap it
            if self.returncode is None:
                _, status = os.waitpid(self.pid, 0)
                self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode


def memory_bytes(pid: int) -> int:
    """Proportional memory (PSS) of a process and its descendants: what several share counts in parts."""
    total = 0
    with suppress(psutil.Error):
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            with suppress(OSError):  # it has just exited, or is of another user
                rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                total += 1024 * int(rollup.partition("\nPss:")[2].split(maxsplit=1)[0])
    return total


def kill_tree(pid: int) -> None:
    """Kill a process group's leader, the group, and all descendants."""
    descendants: list[psutil.Process] = []
    with suppress(psutil.Error):
        descendants = psutil.Process(pid).children(recursive=True)
    _kill_group(pid)
    for process in descendants:
        with suppress(psutil.Error):
            process.kill()


def _wait_for_exit(pid: int, timeout_s: float) -> None:
    """Wait for a process to exit without reaping it: it may be another supervisor's child."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            poller.poll(timeout_s * 1000)
        finally:
            os.close(descriptor)


def _set_niceness(group: int, session: int, niceness: int) -> None:
    """Set the niceness of every thread in a process group; a higher one cannot be lowered."""
    with suppress(ProcessLookupError, PermissionError):
        os.setpriority(os.PRIO_PGRP, group, niceness)
    # With autogroup scheduling, only the session's niceness counts.
    with suppress(OSError):
        Path(f"/proc/{session}/autogroup").write_text(str(niceness))


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class ProcessIdentity:
    """A file with the PID and start time of an attempt's engine, so that a later attempt can kill it."""

    def __init__(self, attempt_folder: Path) -> None:
        self._path = attempt_folder / "engine.json"

    def write(self, pid: int) -> None:
        """Save the identity of a process."""
        with suppress(psutil.Error):
            created = psutil.Process(pid).create_time()
            self._path.write_text(json.dumps({"pid": pid, "created": created}))

    def kill_survivor(self) -> bool:
        """Kill the saved process and its descendants if it still runs; return whether it did."""
        try:
            saved = json.loads(self._path.read_text())
            process = psutil.Process(saved["pid"])
            if abs(process.create_time() - saved["created"]) > 1.0:
                return False
        except (OSError, ValueError, KeyError, psutil.Error):
            return False
        kill_tree(process.pid)
        _wait_for_exit(process.pid, 10)
        return True
