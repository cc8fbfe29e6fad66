"""Child processes of the engine: start, messages, stop. Needs no torch.

Children are forked by one fork server, which has imported what they need, so that 64 start within seconds. In
an engine that its worker's engine server has forked, the fork server is forked too (`fork_fork_server`).
A child exits when the engine does, however the engine ends. It ignores SIGINT and SIGTERM, which the engine
handles. Parent and child exchange messages `(kind, content)` over a `Channel`; an exception in a child is
sent to the parent with its traceback.
"""

import atexit
import ctypes
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from multiprocessing import (
    active_children,
    forkserver,
    get_context,
    parent_process,
    resource_tracker,
    util,
)
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.util import Finalize, get_temp_dir
from typing import Any, NoReturn

import psutil

STOP_TIMEOUT_S = 10.0

FAILED = "failed"
"""Kind of the message about an exception in the child; its content is the traceback."""

_REPLY = "reply"
_FORK_SERVER_DIED = 255
"""`multiprocessing`'s exit status of a child that the fork server can no longer report on."""
_FORK_SERVER_FOLDER = "CALLBOARD_FORK_SERVER_FOLDER"
_FORK_SERVER_ENGINE = "CALLBOARD_FORK_SERVER_ENGINE"
_MAX_TEMPORARY_BYTES = 107 - len("/pymp-12345678/listener-12345678")
"""A Unix socket's path has at most 107 bytes."""
_KILL_BEFORE_JOIN = 100
"""Exit priority: `multiprocessing` waits for children at exit, so those never stopped are killed first."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_CONTEXT = get_context("forkserver")


class ChildError(RuntimeError):
    """A child process failed or died. Subclasses: `ChildFailedError`, `ChildDiedError`."""


class ChildFailedError(ChildError):
    """An exception in a child, with its traceback; or why a `ChildPool` does not replace a child."""


class ChildDiedError(ChildError):
    """A child process has exited, or does not answer any more; `signal` killed it, if one did."""

    def __init__(self, name: str, exit_status: int | None) -> None:
        self.signal: int | None = None
        if exit_status is None:
            how = "does not answer"
        elif exit_status == _FORK_SERVER_DIED:
            self.signal, how = signal.SIGKILL, "died with its fork server"
        elif exit_status < 0:
            self.signal, how = -exit_status, f"was killed by signal {-exit_status}"
        else:
            how = f"ended with exit status {exit_status}"
        super().__init__(f"{name} {how}")


class ChannelClosedError(Exception):
    """The process at the other end closed its channel, or has exited."""


class Channel:
    """One end of a two-way channel of pickled messages."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def pair(cls) -> "tuple[Channel, Channel]":
        """Both ends of a new channel."""
        first, second = Pipe()
        return cls(first), cls(second)

    def send(self, kind: str, content: Any = None) -> None:
        """Send a message.

        Raises:
            ChannelClosedError: no process will receive it.
        """
        try:
            # Plain pickles: a Connection's own would pass tensors as files from process to process.
            self._connection.send_bytes(pickle.dumps((kind, content)))
        except OSError as error:
            raise ChannelClosedError from error

    def receive(self) -> tuple[str, Any]:
        """The next message: kind and content.

        Raises:
            ChannelClosedError: there is none, and none will come.
        """
        try:
            message: tuple[str, Any] = pickle.loads(self._connection.recv_bytes())  # noqa: S301  # our own
        except (EOFError, OSError) as error:
            raise ChannelClosedError from error
        return message

    def poll(self, timeout_s: float = 0.0) -> bool:
        """Whether `receive` would return, or raise, immediately."""
        return self._connection.poll(timeout_s)

    def has_room(self) -> bool:
        """Whether `send` would not wait, for a message of less than half of the socket's buffer."""
        writable = select.poll()
        writable.register(self._connection, select.POLLOUT)
        return bool(writable.poll(0))

    def fileno(self) -> int:
        """The file descriptor, for `wait`."""
        return self._connection.fileno()

    def close(self) -> None:
        """Close this end; the other end's `receive` then raises."""
        self._connection.close()


def preload(*modules: str) -> None:
    """Have the fork server import these modules and common environments when it first starts; they replace
    the modules of an earlier call."""
    envs = ("workers.engine.envs.atari", "workers.engine.envs.gymnasium_env")
    _CONTEXT.set_forkserver_preload(["workers.engine.processes.fork_server", "__main__", *modules, *envs])


def fork_fork_server() -> None:
    """Have the fork server, and the tracker of resources that it starts with, be forks of this process, not
    programs that import all again.

    Call it first: whatever this process opens, starts or builds later, the fork server does not have.
    """
    _name_fork_server_folder()
    spawn = util.spawnv_passfds
    util.spawnv_passfds = _fork_and_run  # type: ignore[assignment]
    try:
        resource_tracker.ensure_running()
        forkserver.ensure_running()
    finally:
        util.spawnv_passfds = spawn


def _fork_and_run(path: str, command: Sequence[str], descriptors: Collection[int]) -> int:
    """Fork a process that does what `python -c CODE` would, with these descriptors; return its process id."""
    if pid := os.fork():
        return pid
    try:
        atexit._clear()
        kept = sorted({2, *descriptors, os.sysconf("SC_OPEN_MAX")})
        for before, after in pairwise(kept):
            os.closerange(before + 1, after)
        exec(command[-1], {})  # noqa: S102  # multiprocessing's own line
    finally:
        exit_fork(0)


def exit_fork(status: int) -> NoReturn:
    """Exit as Python does, but leave all objects to the kernel: to free them would first copy the memory that
    this process shares with the one it was forked from."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


class Child:
    """A child process that runs `target(channel, *arguments)`; it is killed once nothing references it."""

    def __init__(self, target: Callable[..., None], *arguments: Any, name: str) -> None:
        """Start it.

        Args:
            target: a function of a module; its first argument is the child's end of the channel.
            arguments: pickled for the child. Sockets and `SharedArrays` among them are passed on.
            name: name of the process for messages, such as `actor 3`.

        Raises:
            ChildDiedError: the fork server was killed while it started the child.
        """
        self.name = name
        self.channel, theirs = Channel.pair()
        _name_fork_server_folder()
        self.process = _CONTEXT.Process(
            target=_run, args=(target, theirs, arguments, dict(os.environ)), name=name
        )
        try:
            self.process.start()
        except (EOFError, ConnectionError, FileNotFoundError) as error:
            raise ChildDiedError(name, _FORK_SERVER_DIED) from error
        finally:
            theirs.close()
        Finalize(self, _kill, (self.process,), exitpriority=_KILL_BEFORE_JOIN)

    def request(self, kind: str, content: Any = None) -> Any:
        """Send a request to a child that runs `serve`, and wait for the reply.

        Raises:
            ChildFailedError: the request failed there; the message is the traceback.
            ChildDiedError: the child has exited.
        """
        self.send(kind, content)
        return self.reply()

    def send(self, kind: str, content: Any = None) -> None:
        """Send a message.

        Raises:
            ChildDiedError: the child has exited.
        """
        try:
            self.channel.send(kind, content)
        except ChannelClosedError as error:
            raise self.await_failure() from error

    def reply(self) -> Any:
        """Wait for the reply to the last request; raises as `request`."""
        try:
            kind, content = self.channel.receive()
        except ChannelClosedError as error:
            raise self.await_failure() from error
        if kind == FAILED:
            raise ChildFailedError(content)
        return content

    def await_failure(self) -> ChildError:
        """Wait for the end of a child that has stopped working, and return why: its exception, else how its
        process ended, or that it does not answer. Other messages of it are lost."""
        with suppress(ChannelClosedError):
            while self.channel.poll(STOP_TIMEOUT_S):
                kind, content = self.channel.receive()
                if kind == FAILED:
                    return ChildFailedError(content)
        self.process.join(STOP_TIMEOUT_S)
        return ChildDiedError(self.name, self.process.exitcode)

    def join(self) -> int:
        """Wait for the process to end, kill it if it does not in time, and return its exit status."""
        self.process.join(STOP_TIMEOUT_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        status = self.process.exitcode
        assert status is not None
        return status


def stop(children: Iterable[Child]) -> None:
    """Close the children's channels, and wait until they have exited."""
    stopping = list(children)
    for child in stopping:
        child.channel.close()
    for child in stopping:
        child.join()


def kill_all() -> None:
    """Kill every child of this process; threads that wait for one learn that it died."""
    for process in active_children():
        process.kill()


def serve(channel: Channel, handle: Callable[[str, Any], Any]) -> NoReturn:
    """Reply to requests with what `handle(kind, content)` returns.

    Raises:
        ChannelClosedError: the parent has closed the channel.
    """
    while True:
        channel.send(_REPLY, handle(*channel.receive()))


def die_with_parent(parent: int, how: int = signal.SIGKILL) -> None:
    """Ask the kernel to end this process when the thread that started it ends (Linux; else no effect).

    Args:
        parent: process id of the parent by its own account. If it has already ended, the kernel gave this
            process another parent and would never act: this process exits.
        how: the signal that ends it.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Within it, descendants whose parent exits become children of this process (Linux).

    Raises:
        OSError: the kernel refuses it, or is not Linux.
    """
    if _LIBC is None or _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("this system lets no process adopt orphans")
    try:
        yield
    finally:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def become_child(parent: int) -> None:
    """Die with the parent, and leave a terminal's Ctrl-C and SIGTERM to the engine.

    Args:
        parent: the parent's process id.
    """
    die_with_parent(parent)
    ignore_stop_signals()


def ignore_stop_signals() -> None:
    """Leave SIGINT and SIGTERM to the engine, which stops its children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def prepare_fork_server() -> None:
    """Settings of the fork server's process; called there.

    The engine removes the folder of the fork server's socket when it exits. If the engine was killed, the
    fork server removes the folder: it exits after the engine and its children.
    """
    ignore_stop_signals()
    folder, engine = os.environ.get(_FORK_SERVER_FOLDER), int(os.environ.get(_FORK_SERVER_ENGINE, "0"))
    # Both are inherited: by a child's own fork server, and by other programs that the engine starts.
    if folder and (os.getppid() == engine or not psutil.pid_exists(engine)):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _name_fork_server_folder() -> None:
    """Tell a fork server that this process may start, by environment variables, which folder to remove."""
    folder = _temporary_folder()
    if parent_process() is None:  # a child's folder is its engine's
        os.makedirs(folder, mode=0o700, exist_ok=True)  # a fork server that failed has removed it
        os.environ[_FORK_SERVER_FOLDER] = folder
        os.environ[_FORK_SERVER_ENGINE] = str(os.getpid())


def _temporary_folder() -> str:
    """The folder of the fork server's socket, whose path must be short."""
    configured = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > _MAX_TEMPORARY_BYTES:
        tempfile.tempdir = "/tmp"  # noqa: S108  # `multiprocessing` creates a private folder in it
    try:
        return get_temp_dir()
    finally:
        tempfile.tempdir = configured


def _kill(process: ForkServerProcess) -> None:
    if process.is_alive():
        process.kill()


def _run(
    target: Callable[..., None], channel: Channel, arguments: tuple[Any, ...], environment: dict[str, str]
) -> None:
    os.environ.update(environment)  # the fork server has that of its own start
    become_child(os.getppid())  # the kernel takes the fork server for the parent
    threading.Thread(target=_exit_with_engine, daemon=True).start()
    try:
        target(channel, *arguments)
    except ChannelClosedError:
        return
    except Exception:
        with suppress(ChannelClosedError):
            channel.send(FAILED, traceback.format_exc())
        sys.exit(1)


def _exit_with_engine() -> NoReturn:
    engine = parent_process()
    assert engine is not None
    wait([engine.sentinel])
    os._exit(1)


preload()  # what every fork server needs; a later call adds modules of its own in place of earlier ones
