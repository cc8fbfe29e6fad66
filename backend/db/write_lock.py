"""SQLite's write lock: in one process in the order of arrival, between processes by looking often.

SQLite has no queue. Its own waiting looks for the lock now and then, in the end every 100 ms, and whoever
asks at the right moment gets it: behind one writer after the other, a request would wait for seconds.
"""

import sqlite3
from collections import deque
from threading import Lock
from time import monotonic, sleep
from typing import Any

POLL_S = 0.002
"""How often the first of the threads of this process looks whether another process has released the lock."""
LONG_S = 0.02
REST_S = 0.005
"""Pause between two transactions of this process of which the first was longer than `LONG_S`: the other
processes get their turn."""


class WriteLock:
    """The line of the threads of this process, of which the first one may ask SQLite for the lock."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._is_held = False
        self._held_since = 0.0
        self._waiting: deque[Lock] = deque()

    @property
    def n_waiting(self) -> int:
        """Threads that wait for the one that has the lock."""
        return len(self._waiting)

    def acquire(self, wait_s: float) -> bool:
        """Wait for the other threads that came before. False if that takes longer than `wait_s`."""
        with self._mutex:
            if not self._is_held:
                self._is_held, self._held_since = True, monotonic()
                return True
            turn = Lock()
            turn.acquire()
            self._waiting.append(turn)
        if not turn.acquire(timeout=wait_s):
            with self._mutex:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                    return False
            # It came just now.
        if monotonic() - self._held_since > LONG_S:
            sleep(REST_S)
        self._held_since = monotonic()
        return True

    def release(self) -> None:
        """Give the lock to the thread that has waited longest, if any."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False


class WriteTurn:
    """The turn of one transaction."""

    def __init__(self, lock: WriteLock) -> None:
        self._lock = lock
        self._is_held = False

    def begin(self, connection: sqlite3.Connection, wait_s: float) -> None:
        """Begin a transaction with the write lock.

        Raises:
            sqlite3.OperationalError: the database is locked for longer than `wait_s`, or broken.
        """
        ends_at = monotonic() + wait_s
        if not self._lock.acquire(wait_s):
            raise sqlite3.OperationalError("database is locked")
        self._is_held = True
        [usual_ms] = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            while not _begin(connection, is_last=monotonic() >= ends_at):
                sleep(POLL_S)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {usual_ms}")

    def end(self) -> None:
        """Release the lock, after the transaction or if it could not begin. Further calls have no effect."""
        if self._is_held:
            self._is_held = False
            self._lock.release()


def _begin(connection: Any, *, is_last: bool) -> bool:
    """Begin a transaction; False if another process has the lock. Raises instead if this is the last try."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if is_last or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
