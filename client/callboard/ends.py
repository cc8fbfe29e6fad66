"""How a script ends: by an exception, an exit status, a signal, or normally.

A run that nobody closes learns it when the interpreter exits. There an exception is the one that the
interpreter has printed since the run has begun, and an exit status the one of `sys.exit`. The interpreter
forgets a SystemExit that a script raises itself before it exits. But when it has executed a file
(`python script.py`), it first flushes the standard error and output, and then the exception is still there.
In a notebook, an exception belongs to a run if the cell that raised it has logged to the run, or if nothing
has been logged to the run yet. An exception that ends a thread belongs to a run if this thread, or none, was
the last to log values or episodes to the run, and nothing has trained it further since.

SIGTERM and SIGHUP end a process at once, unless the script handles them. While a run is open, another handler
stands in for that default: a thread reports the end of all runs, and then the signal does what it did before.
Handlers of the script are left alone. Python writes the number of each signal that it handles into a pipe
(`signal.set_wakeup_fd`), from which the thread learns of signals that the script handles itself.

Some ends cannot be recognised. The exit status is unknown for a SystemExit that the script raises itself
after `python -m`, `python -c` or `runpy`, for one that something keeps although nobody has caught it, as
asyncio does for its tasks, and for an `exit` that the script has imported from `sys` before this package: the
run is reported as finished. If a script handles SIGHUP itself and ends within a minute, for whatever reason,
its run is reported as stopped. `run.close(state, reason)` overrides both. If `init` is called in another
thread than the main one, which alone can install handlers, SIGTERM and SIGHUP are not seen, and the run is
lost.
"""

from __future__ import annotations

import builtins
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol

from callboard.cleaning import as_text, kind_of
from callboard.limits import MAX_REASON_CHARACTERS
from callboard.rows import clean

SIGNAL_TIMEOUT_S = 5.0
"""How long a process that a signal ends waits for the server."""
SIGNAL_GRACE_S = 60.0
"""A script that ends in this time after a signal has ended because of it."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_NOTED = (signal.SIGINT, *_ENDING)
_INTERRUPTED = "interrupted from the keyboard (SIGINT)"
_QUESTION = 255
"""Written into the pipe after the signals, to learn when all are noted."""
_ANSWER_S = 1.0
_SHELL_STATUS = 128
"""A shell's exit status of a process that a signal has ended, less the signal's number."""


class Watched(Protocol):
    """A run, as far as the end of the process concerns it."""

    def end_by_signal(self, reason: str) -> None:
        """End the run as stopped; called by another thread."""

    def add_error(self, message: str) -> None:
        """Write a line into the run's log."""

    @property
    def n_rows(self) -> int:
        """How many rows were logged to the run."""

    @property
    def has_begun(self) -> bool:
        """Whether anything but settings was logged to the run."""

    @property
    def training_thread(self) -> int | None:
        """Identifier of the last thread that has logged values or episodes."""

    @property
    def agent_steps(self) -> int:
        """The most agent steps that were logged."""


class Watch:
    """What the end of the process means for one run."""

    def __init__(self, run: Watched, error_before: Any) -> None:
        self.run = run
        self.error_before = error_before
        """What the interpreter had printed as the last error before the run began."""
        self.n_rows_before_cell = 0
        self.cell_error: BaseException | None = None
        """In a notebook, the exception of the last cell that has logged to the run, or of one before it."""
        self.end_of_thread: tuple[str, str | None] = "finished", None
        """State and reason after the exception that has ended the thread that trains."""
        self.agent_steps_of_thread = 0
        """Agent steps of the run when that thread has ended."""


class _Process:
    """What is known of this process."""

    def __init__(self) -> None:
        self.pid = 0
        """The process in which handlers were installed; another one after a fork."""
        self.watches: list[Watch] = []
        self.exit_status: Any = None
        self.signals: dict[int, float] = {}
        """Number of a signal -> when it last came."""
        self.pipe = -1
        self.has_read = threading.Event()
        self.is_notebook = False


_process = _Process()
_masks = threading.local()
"""Signals that were held back before a fork; None if nothing is installed."""


class _Exit(SystemExit):
    """What `sys.exit` raises while a run is open: it notes its status if it ends the interpreter."""

    def __del__(self) -> None:
        # The interpreter frees it with no Python code below: whoever catches it is still there.
        if sys._getframe().f_back is None and threading.current_thread() is threading.main_thread():
            _process.exit_status = self.code


def _exit(status: Any = None, /) -> None:
    """Exit the interpreter by raising SystemExit(status)."""
    raise _Exit(status)


class _Flush:
    """The method `flush` of the standard error or output. The interpreter calls both after a file."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush

    def __call__(self) -> None:
        """Flush the stream."""
        if sys._getframe().f_back is None and threading.current_thread() is threading.main_thread():
            with suppress(Exception):
                _note_system_exit()
        self._flush()


def _note_system_exit() -> None:
    """Note the exit status of the SystemExit that has left the script, if there is one."""
    if hasattr(sys, "ps1"):
        return  # an interactive interpreter flushes after each statement
    objects = gc.get_objects()
    try:
        for error in objects:
            # One that was caught and kept is an item or an attribute of something.
            if type(error) is SystemExit and _is_only_in(objects, error):
                _process.exit_status = error.code
    finally:
        error = None
        objects.clear()  # what it keeps alive would be freed after the run has been ended


def _is_only_in(objects: list[Any], item: Any) -> bool:
    """Whether nothing but a list of objects refers to one of them."""
    return all(referrer is objects for referrer in gc.get_referrers(item))


def _quit(self: Any, code: Any = None) -> None:
    """Close the standard input, and exit the interpreter: `exit` and `quit`, which `site` defines."""
    with suppress(Exception):
        sys.stdin.close()
    _exit(code)


class _ThreadHook:
    """What `threading` calls with an exception that has ended a thread."""

    def __init__(self, before: Callable[[Any], Any]) -> None:
        self._before = before

    def __call__(self, arguments: Any, /) -> None:
        """Note the exception, and do what was done before."""
        with suppress(Exception):
            _note_end_of_thread(arguments)
        self._before(arguments)


def _note_end_of_thread(arguments: Any) -> None:
    if issubclass(arguments.exc_type, SystemExit):
        return
    state, reason = outcome(arguments.exc_value or arguments.exc_type())
    thread = as_text(getattr(arguments.thread, "name", "a thread"))
    reason = clean(f"{reason}, in {thread}", MAX_REASON_CHARACTERS)
    for watched in [*_process.watches]:
        with suppress(Exception):
            watched.run.add_error(f"A thread has ended by an exception that nothing has caught: {reason}")
        if watched.run.training_thread in (None, threading.get_ident()):
            watched.end_of_thread, watched.agent_steps_of_thread = (state, reason), watched.run.agent_steps


def watch(run: Watched) -> Watch:
    """Watch for the end of the process on behalf of a run."""
    with suppress(Exception):
        _install()
    watched = Watch(run, getattr(sys, "last_value", None))
    _process.watches.append(watched)
    return watched


def unwatch(watched: Watch) -> None:
    """Stop watching on behalf of a run, which has ended."""
    with suppress(ValueError):
        _process.watches.remove(watched)


def outcome_now(watched: Watch, error: BaseException | None = None) -> tuple[str, str | None]:
    """State and reason of a run that its script ends with this exception, or without one."""
    return _with_thread(watched, outcome(error))


def _with_thread(watched: Watch, end: tuple[str, str | None]) -> tuple[str, str | None]:
    """The given end, or that of the thread that trained if an exception ended it and no other went on."""
    if end[0] == "finished" and watched.run.agent_steps <= watched.agent_steps_of_thread:
        return watched.end_of_thread
    return end


def outcome(error: BaseException | None) -> tuple[str, str | None]:
    """State and reason of a run whose script ends with this exception, or without one."""
    if isinstance(error, KeyboardInterrupt):
        return "stopped", _INTERRUPTED
    if isinstance(error, SystemExit):
        return _of_status(error.code)
    if error is None:
        return _of_status(None)
    # An event loop that is interrupted cancels its task.
    by_signal = _recent_signal(_NOTED if _is_cancelled(error) else _ENDING)
    text = _text_of(error)
    if by_signal is not None:
        return "stopped", clean(f"{_ended_by(by_signal)} ({text})", MAX_REASON_CHARACTERS)
    return "failed", clean(text, MAX_REASON_CHARACTERS)


def _is_cancelled(error: BaseException) -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def outcome_at_exit(watched: Watch) -> tuple[str, str | None]:
    """State and reason of a run that is open when the interpreter exits."""
    if _process.is_notebook:
        return outcome_now(watched, watched.cell_error)
    error = getattr(sys, "last_value", None)
    if error is not None and error is not watched.error_before:
        return outcome(error)
    return _with_thread(watched, _of_status(_process.exit_status))


def _of_status(status: Any) -> tuple[str, str | None]:
    by_signal = _recent_signal(_NOTED)
    if by_signal is None and type(status) is int and status - _SHELL_STATUS in _NOTED:
        by_signal = status - _SHELL_STATUS
    if by_signal is not None:
        return "stopped", _ended_by(by_signal)
    if status is None or (isinstance(status, int) and status == 0):
        return "finished", None
    text = f"exit status {int(status)}" if isinstance(status, int) else as_text(status)
    return "failed", clean(text, MAX_REASON_CHARACTERS)


def _recent_signal(numbers: tuple[int, ...]) -> int | None:
    """The last of these signals that came a short time ago."""
    _read_signals()
    came = {number: at for number, at in _process.signals.items() if number in numbers}
    last = max(came, key=lambda number: came[number], default=None)
    return None if last is None or time.monotonic() - came[last] > SIGNAL_GRACE_S else last


def _ended_by(number: int) -> str:
    return _INTERRUPTED if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def _text_of(error: BaseException) -> str:
    lines = as_text(error).strip().splitlines()
    return f"{kind_of(error)}: {lines[-1]}" if lines else kind_of(error)


def _install() -> None:
    """Install the hooks that note how the process ends, once; those of signals only in the main thread."""
    if sys.exit is not _exit:
        sys.exit = _exit  # type: ignore[assignment]
        quitter = type(getattr(builtins, "exit", None))
        if quitter.__name__ == "Quitter":
            setattr(quitter, "__call__", _quit)  # noqa: B010
    if not isinstance(threading.excepthook, _ThreadHook):
        threading.excepthook = _ThreadHook(threading.excepthook)
    for stream in (sys.stderr, sys.stdout):  # the script may replace one of them later
        if not isinstance(getattr(stream, "flush", None), _Flush):
            with suppress(Exception):  # of a stream of the script's own
                stream.flush = _Flush(stream.flush)  # type: ignore[method-assign]
    _watch_cells()
    if _process.pid == os.getpid() or threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    _process.pid, _process.pipe = os.getpid(), writing
    threading.Thread(target=_follow, args=(reading,), name="callboard-signals", daemon=True).start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)  # of an event loop
    for number in _ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _handle)


def _handle(number: int, frame: FrameType | None) -> None:
    """Let the thread end the runs, and let the next signal do what it did before."""
    signal.signal(number, signal.SIG_DFL)
    with suppress(OSError):
        os.write(_process.pipe, bytes([number]))


def _follow(reading: int) -> None:
    """Note the signals that come; end the process after one that nobody else handles."""
    while True:
        data = os.read(reading, 1)
        if not data:
            return
        number = data[0]
        if number == _QUESTION:
            _process.has_read.set()
        elif number in _NOTED:
            _process.signals[number] = time.monotonic()
            # By default, SIGTERM and SIGHUP never get here: the handler has just been taken away.
            if number in _ENDING and signal.getsignal(number) in (_handle, signal.SIG_DFL):
                break
    for watched in [*_process.watches]:
        with suppress(Exception):
            watched.run.end_by_signal(_ended_by(number))
    for _ in range(2):  # the first one may still find the handler
        os.kill(os.getpid(), number)
        time.sleep(SIGNAL_TIMEOUT_S / 2)
    os._exit(_SHELL_STATUS + number)  # code that never returns to Python keeps the handler from running


def _read_signals() -> None:
    """Wait until the thread has noted every signal that has come."""
    if _process.pid != os.getpid():
        return
    _process.has_read.clear()
    with suppress(OSError):
        os.write(_process.pipe, bytes([_QUESTION]))
        _process.has_read.wait(_ANSWER_S)


def _before_fork() -> None:
    """Hold signals back: one for the child must not get into the pipe, which is the parent's."""
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOTED) if _process.pid == os.getpid() else None


def _after_fork_in_parent() -> None:
    if _masks.before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _after_fork() -> None:
    """In a child process, the runs belong to the parent, and signals do what they did before."""
    _process.__init__()  # type: ignore[misc]
    if _masks.before is None:
        return
    with suppress(Exception):
        signal.set_wakeup_fd(-1)
        for number in _ENDING:
            if signal.getsignal(number) is _handle:
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _watch_cells() -> None:
    """Learn how the cells of a notebook end, if this is one."""
    if _process.is_notebook or "IPython" not in sys.modules:
        return
    shell = sys.modules["IPython"].get_ipython()
    if shell is None:
        return
    shell.events.register("pre_run_cell", _before_cell)
    shell.events.register("post_run_cell", _after_cell)
    _process.is_notebook = True


def _before_cell(*_: Any) -> None:
    for watched in _process.watches:
        watched.n_rows_before_cell = watched.run.n_rows


def _after_cell(result: Any = None, *_: Any) -> None:
    in_cell = getattr(result, "error_in_exec", None)
    error = getattr(result, "error_before_exec", None) or in_cell
    for watched in _process.watches:
        if watched.run.has_begun and watched.run.n_rows > watched.n_rows_before_cell:
            watched.cell_error = error if isinstance(error, BaseException) else None
        elif not watched.run.has_begun and isinstance(in_cell, BaseException):
            watched.cell_error = in_cell  # until a cell logs to the run: it may be what keeps them from it


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
