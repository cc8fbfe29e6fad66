"""How a script ends: by an exception, an exit status, a signal, or normally.

A run that nobody closes is ended by `atexit`. The end is then the exception that the interpreter has given
to `sys.excepthook` since the run began (`sys.last_value`), else the exit status of `sys.exit`, else a normal
one. In an interactive interpreter or a notebook, where an exception ends no process, it is a normal one.
SIGINT is the KeyboardInterrupt that it raises. SIGTERM is noted by a handler, which calls the one that the
script had before; without one, all runs are ended first, and then the process as before.

Any other end, such as SIGKILL or `os._exit`, leaves the run to be lost.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from types import FrameType
from typing import Any

from callboard.cleaning import as_text, kind_of
from callboard.limits import MAX_REASON_CHARACTERS
from callboard.rows import clean

SIGNAL_TIMEOUT_S = 5.0
"""How long a process that SIGTERM ends waits for the server."""
SIGNAL_GRACE_S = 60.0
"""A script that ends in this time after SIGTERM has ended because of it."""

_INTERRUPTED = "interrupted from the keyboard (SIGINT)"
_TERMINATED = "ended by SIGTERM"
_SHELL_STATUS = 128
"""A shell's exit status of a process that a signal has ended, less the signal's number."""


class Watch:
    """An open run, as far as the end of the process concerns it."""

    def __init__(self, end_as_stopped: Callable[[str], None]) -> None:
        """Watch a run from now on.

        Args:
            end_as_stopped: ends the run with a reason; called by another thread.
        """
        self.end_as_stopped = end_as_stopped
        self.error_before = getattr(sys, "last_value", None)
        """What the interpreter had printed as the last error before the run began."""


class _Process:
    """What is known of this process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        """A forked child has another one: the runs are its parent's."""
        self.watches: list[Watch] = []
        self.exit_status: Any = None
        self.terminated_at: float | None = None
        self.signals: SimpleQueue[int] = SimpleQueue()
        """SIGTERM, if the script does not handle it."""
        threading.Thread(target=self._follow, name="callboard-signals", daemon=True).start()

    def _follow(self) -> None:
        """End the runs and then the process: a handler might wait for what the main thread has locked."""
        number = self.signals.get()
        for watched in [*self.watches]:
            with suppress(Exception):
                watched.end_as_stopped(_TERMINATED)
        os.kill(os.getpid(), number)


_process: _Process | None = None
_handler_before: Any = None
"""What SIGTERM did before `_on_term` handled it; None if it does not."""
_masks = threading.local()
"""Signals that were held back before a fork; None if nothing is."""


class _Exit(SystemExit):
    """What `sys.exit` raises while a run is open: it notes its status if it ends the interpreter."""

    def __del__(self) -> None:
        # The interpreter frees it with no Python code below: whoever catches it is still there.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and sys._getframe().f_back is None and _process is not None:
            _process.exit_status = self.code


def _exit(status: Any = None, /) -> None:
    """Exit the interpreter by raising SystemExit(status)."""
    raise _Exit(status)


def watch(end_as_stopped: Callable[[str], None]) -> Watch:
    """Watch for the end of the process on behalf of a run."""
    global _process
    if _process is None or _process.pid != os.getpid():
        _process = _Process()
    with suppress(Exception):
        _install()
    watched = Watch(end_as_stopped)
    _process.watches.append(watched)
    return watched


def unwatch(watched: Watch) -> None:
    """Stop watching on behalf of a run, which has ended."""
    if _process is not None and watched in _process.watches:
        _process.watches.remove(watched)


def outcome(error: BaseException | None = None) -> tuple[str, str | None]:
    """State and reason of a run whose script ends with this exception, or without one."""
    if isinstance(error, KeyboardInterrupt):
        return "stopped", _INTERRUPTED
    if error is None or isinstance(error, SystemExit):
        return _of_status(None if error is None else error.code)
    text = _text_of(error)
    if _is_terminated():
        return "stopped", clean(f"{_TERMINATED} ({text})", MAX_REASON_CHARACTERS)
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(error, asyncio.CancelledError):  # by SIGINT, for example
        return "stopped", clean(text, MAX_REASON_CHARACTERS)
    return "failed", clean(text, MAX_REASON_CHARACTERS)


def outcome_at_exit(watched: Watch) -> tuple[str, str | None]:
    """State and reason of a run that is open when the interpreter exits."""
    error = getattr(sys, "last_value", None)
    if error is not None and error is not watched.error_before and not hasattr(sys, "ps1"):
        return outcome(error)
    return _of_status(None if _process is None else _process.exit_status)


def _of_status(status: Any) -> tuple[str, str | None]:
    number = status - _SHELL_STATUS if type(status) is int else 0
    if _is_terminated() or number == signal.SIGTERM:
        return "stopped", _TERMINATED
    if number == signal.SIGINT:
        return "stopped", _INTERRUPTED
    if status is None or (isinstance(status, int) and status == 0):
        return "finished", None
    text = f"exit status {int(status)}" if isinstance(status, int) else as_text(status)
    return "failed", clean(text, MAX_REASON_CHARACTERS)


def _is_terminated() -> bool:
    at = None if _process is None else _process.terminated_at
    return at is not None and time.monotonic() - at <= SIGNAL_GRACE_S


def _text_of(error: BaseException) -> str:
    lines = as_text(error).strip().splitlines()
    return f"{kind_of(error)}: {lines[-1]}" if lines else kind_of(error)


def _install() -> None:
    """Install what notes an exit status and, in the main thread, SIGTERM; once."""
    global _handler_before
    sys.exit = _exit  # type: ignore[assignment]
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGTERM)
        # A handler that the script installs later may call this one, and is left alone.
        if handler is signal.SIG_DFL or (_handler_before is None and callable(handler)):
            _handler_before = handler
            signal.signal(signal.SIGTERM, _on_term)


def _on_term(number: int, frame: FrameType | None) -> None:
    """Note SIGTERM, and do what it did before; without a handler of the script, once the runs are ended."""
    process = _process if _process is not None and _process.pid == os.getpid() else None
    if process is not None:
        process.terminated_at = time.monotonic()
    if callable(_handler_before):
        _handler_before(number, frame)
        return
    signal.signal(number, signal.SIG_DFL)
    if process is not None:
        process.signals.put(number)
    else:
        os.kill(os.getpid(), number)


def _before_fork() -> None:
    """Hold SIGTERM back: Python forgets a signal that comes to a child before the fork is over."""
    is_handled = signal.getsignal(signal.SIGTERM) is _on_term
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}) if is_handled else None


def _after_fork() -> None:
    if _masks.before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
