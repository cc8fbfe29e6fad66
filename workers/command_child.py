"""The parent of a command's process, run as a script of its own that imports the standard library alone.

It starts the command, hands SIGTERM on to it, and ends with its status. Once the command ends, or the worker
that wanted it, everything that the command has started is killed, whatever group it is in.
"""

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CANNOT_START = 127
"""A shell's status of a command that it cannot start."""


def main(file: str, worker: int) -> int:
    """Run the command that a JSON file names by `arguments` and `folder`, on behalf of a worker's process.

    Returns:
        Its exit status, negative for a signal.
    """
    # What it leaves behind becomes a child of this process.
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    command = json.loads(Path(file).read_text("utf-8"))
    try:
        parent = os.pidfd_open(worker)
    except ProcessLookupError:
        return -signal.SIGKILL
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        child = subprocess.Popen(
            command["arguments"],
            cwd=command["folder"],
            stdin=subprocess.DEVNULL,
            preexec_fn=_prepare_child,  # this process has one thread
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        sys.stderr.write(f"cannot start {command['arguments'][0]} in {command['folder']}: {reason}\n")
        return _CANNOT_START
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    poller = select.poll()
    for descriptor in (os.pidfd_open(child.pid), parent):
        poller.register(descriptor, select.POLLIN)
    poller.poll()
    child.kill()  # nothing, if it has ended
    status = child.wait()
    kill_all()
    return status


def _prepare_child() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def kill_all() -> None:
    """Kill all descendants: the children of those that are killed become children of this process."""
    while children := _children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    children = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            # The name before it, in parentheses, may have any characters.
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                children.append(int(folder.name))
    return children


if __name__ == "__main__":
    exit_status = main(sys.argv[1], int(sys.argv[3]))
    if exit_status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # the handlers of some signals cannot be set
            signal.signal(-exit_status, signal.SIG_DFL)
        os.kill(os.getpid(), -exit_status)
    sys.exit(exit_status)
