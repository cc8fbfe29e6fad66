"""No process outlives the one it works for."""

import ctypes
import os
import shutil
import signal
import sys
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent(parent: int, how: int = signal.SIGKILL) -> None:
    """Ask the kernel to end this process when the thread that started it ends (Linux; else no effect).

    Args:
        parent: process id of who started it, by their own account: one that is gone already has left this
            process to another, which would never be known from here.
        how: the signal that ends it.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def become_helper(parent: int) -> None:
    """Live and die with the engine, which alone answers to a terminal's Ctrl-C and to SIGTERM.

    Args:
        parent: the engine's process id.
    """
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def become_forked_helper(temporary: str) -> None:
    """The same for a fork server's child: the kernel takes the fork server for its parent.

    Args:
        temporary: the engine's folder for the fork server's socket, which an engine that is killed leaves.
    """
    become_helper(os.getppid())
    threading.Thread(target=_end_with_the_engine, args=(temporary,), daemon=True).start()


def _end_with_the_engine(temporary: str) -> NoReturn:
    engine = parent_process()
    assert engine is not None
    wait([engine.sentinel])
    shutil.rmtree(temporary, ignore_errors=True)
    os._exit(1)
