"""No process outlives the one it works for."""

import ctypes
import os
import shutil
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends (Linux; else no effect)."""
    parent = os.getppid()
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def become_helper() -> None:
    """Live and die with the engine, which alone answers to a terminal's Ctrl-C and to SIGTERM."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def become_forked_helper(temporary: str) -> None:
    """The same for a fork server's child: the kernel takes the fork server for its parent.

    Args:
        temporary: the engine's folder for the fork server's socket, which an engine that is killed leaves.
    """
    become_helper()
    threading.Thread(target=_end_with_the_engine, args=(temporary,), daemon=True).start()


def _end_with_the_engine(temporary: str) -> NoReturn:
    engine = parent_process()
    assert engine is not None
    wait([engine.sentinel])
    shutil.rmtree(temporary, ignore_errors=True)
    os._exit(1)
