"""The databases of chaos campaigns and their disturbances."""

import random
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from tests.support.databases import PostgresServer, migrated_sqlite


class Database(Protocol):
    """A database that can be disturbed."""

    name: str
    url: str

    def disturb(self, rng: random.Random) -> tuple[str, Callable[[], None]]:
        """Return the title of a disturbance, and a function that causes it and returns when it is over."""

    def lock(self, hold_s: float) -> None:
        """Hold a lock that no write gets past, as another process might; return when it is released."""

    def close(self) -> None:
        """Stop the database."""


class Sqlite:
    """An SQLite file, whose disturbance is a long write lock."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "callboard.sqlite3"
        shutil.move(migrated_sqlite(folder), self._path)
        self.url = f"sqlite:///{self._path}"

    def disturb(self, rng: random.Random) -> tuple[str, Callable[[], None]]:
        """Hold the write lock for 0.5 to 6 s, at times longer than a lease."""
        hold_s = rng.uniform(0.5, 6.0)
        return f"lock the database for {hold_s:.1f} s", partial(self.lock, hold_s)

    def lock(self, hold_s: float) -> None:
        """Hold the write lock."""
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        threading.Event().wait(hold_s)
        connection.execute("ROLLBACK")
        connection.close()

    def close(self) -> None:
        """Do nothing: there is no server."""


class Postgres:
    """A PostgreSQL server, whose disturbances are a restart and a killed backend process."""

    name = "postgresql"

    def __init__(self, folder: Path) -> None:
        self._server = PostgresServer(folder)
        self.url = self._server.url(self._server.create_database())

    def disturb(self, rng: random.Random) -> tuple[str, Callable[[], None]]:
        """Stop and restart the server, or kill one of its processes, which crashes it."""
        if rng.random() < 0.5:
            down_s = rng.uniform(0.1, 6.0)

            def restart() -> None:
                self._server.stop()
                threading.Event().wait(down_s)
                self._server.start()

            return f"stop the database for {down_s:.1f} s", restart

        def crash() -> None:
            backends = psutil.Process(self._server.pid).children()
            if backends:  # there is none for a moment after another crash
                with suppress(psutil.NoSuchProcess):  # it has just ended
                    rng.choice(backends).kill()

        return "kill one of the database's processes", crash

    def lock(self, hold_s: float) -> None:
        """Hold the tables of runs and hosts, for reading too."""
        engine = create_engine(self.url)
        with suppress(OperationalError), engine.begin() as connection:  # the server may be killed meanwhile
            connection.execute(text("LOCK TABLE runs, hosts IN ACCESS EXCLUSIVE MODE"))
            threading.Event().wait(hold_s)
        engine.dispose()

    def close(self) -> None:
        """Stop the server for good."""
        self._server.close()


DATABASES: dict[str, Callable[[Path], Database]] = {"sqlite": Sqlite, "postgresql": Postgres}
