"""The deadline of a request: for all of its statements that read, and for as long as its client waits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

REQUEST_S = 10.0
"""How long a request may read, over all of its statements, before its response begins."""


class RequestEnded(Exception):
    """A request has reached its deadline, or its client has left."""


class Deadline:
    """Ends the statements of one request, in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._on_end: list[Callable[[], None]] = []
        self.is_over = False
        """Whether the request is to end."""

    def end(self) -> None:
        """End the request: the time is over, or its client has left."""
        with self._lock:
            self.is_over = True
            callbacks, self._on_end = self._on_end, []
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Continue only while the request is to go on.

        Raises:
            RequestEnded: the request is to end.
        """
        if self.is_over:
            raise RequestEnded

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the request is to end, from the thread that ends it.

        Raises:
            RequestEnded: the request is to end now.
        """
        with self._lock:
            if self.is_over:
                raise RequestEnded
            self._on_end.append(callback)

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        """Do not call `callback` any more."""
        with self._lock:
            if callback in self._on_end:
                self._on_end.remove(callback)


_CURRENT: ContextVar[Deadline | None] = ContextVar("callboard_deadline", default=None)


def current() -> Deadline | None:
    """The deadline of the request that this code works for; None outside of requests."""
    return _CURRENT.get()


def check() -> None:
    """Continue only while the request is to go on.

    Raises:
        RequestEnded: the request is to end.
    """
    if (deadline := _CURRENT.get()) is not None:
        deadline.check()


@contextmanager
def applied(deadline: Deadline) -> Iterator[None]:
    """Apply a deadline to the code in the block, and to the threads that it uses."""
    token = _CURRENT.set(deadline)
    try:
        yield
    finally:
        _CURRENT.reset(token)
