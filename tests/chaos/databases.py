"""The databases that chaos interrupts, each in its own way."""

import random
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import psutil

from tests.support.databases import PostgresServer, migrated_sqlite


class Database(Protocol):
    """A real database that can be disturbed."""

    name: str
    url: str

    def disturb(self, rng: random.Random) -> tuple[str, Callable[[], None]]:
        """One disturbance: what it is, and what does it and returns when it is over."""

    def close(self) -> None:
        """End it."""


class Sqlite:
    """One file, locked now and then by someone who takes their time."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "callboard.sqlite3"
        shutil.move(migrated_sqlite(folder), self._path)
        self.url = f"sqlite:///{self._path}"

    def disturb(self, rng: random.Random) -> tuple[str, Callable[[], None]]:
        """Hold the write lock for a while, longer than a lease at times."""
        hold_s = rng.uniform(0.5, 6.0)

        def lock() -> None:
            connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
            threading.Event().wait(hold_s)
            connection.execute("ROLLBACK")
            connection.close()

        return f"lock the database for {hold_s:.1f} s", lock

    def close(self) -> None:
        """Nothing to end."""


class Postgres:
    """A server, restarted now and then, or with one of its processes killed."""

    name = "postgresql"

    def __init__(self, folder: Path) -> None:
        self._server = PostgresServer(folder)
        self._database = self._server.database()
        self.url = self._database.__enter__()

    def disturb(self, rng: random.Random) -> tuple[str, Callable[[], None]]:
        """Stop the server and start it after a while, or kill one of its processes, which crashes it."""
        if rng.random() < 0.5:
            down_s = rng.uniform(0.1, 6.0)

            def restart() -> None:
                self._server.stop()
                threading.Event().wait(down_s)
                self._server.start()

            return f"stop the database for {down_s:.1f} s", restart

        def crash() -> None:
            backends = psutil.Process(self._server.pid).children()
            rng.choice(backends).kill()

        return "kill one of the database's processes", crash

    def close(self) -> None:
        """Stop the server for good."""
        self._server.close()


DATABASES: dict[str, Callable[[Path], Database]] = {"sqlite": Sqlite, "postgresql": Postgres}
