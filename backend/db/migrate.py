"""Database migrations: upgrade, downgrade, and checks of the current revision."""

import sqlite3
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event, text

from backend import files
from backend.db.engine import make_engine

UPGRADE_LOCK = 7_163_041
"""PostgreSQL advisory lock: if several processes start simultaneously, one of them upgrades."""


def config() -> Config:
    """Alembic's configuration, independent of the working directory. `alembic.ini` is for creating
    revisions only."""
    cfg = Config()
    cfg.set_main_option("script_location", str(files.migrations()).replace("%", "%%"))
    cfg.set_main_option("path_separator", "os")
    return cfg


def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade the database at `url` to `revision`, in one transaction. Does nothing if it is there
    already."""
    _run(url, lambda cfg: command.upgrade(cfg, revision))


def downgrade(url: str, revision: str) -> None:
    """Downgrade the database at `url` to `revision`."""
    _run(url, lambda cfg: command.downgrade(cfg, revision))


def check(url: str) -> None:
    """Raise an error if the tables in `backend.db` differ from the migrated schema."""
    _run(url, command.check)


def is_current(engine: Engine) -> bool:
    """Whether the database is at the latest revision."""
    with engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    return found == ScriptDirectory.from_config(config()).get_current_head()


def _run(url: str, action: Any) -> None:
    engine = make_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _disable_foreign_keys)
    cfg = config()
    try:
        with engine.execution_options(callboard_writing=True).begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
            cfg.attributes["connection"] = connection
            action(cfg)
    finally:
        engine.dispose()


def _disable_foreign_keys(connection: sqlite3.Connection, record: Any) -> None:
    # SQLite alters a table by copying it and dropping the original, which would cascade.
    connection.execute("PRAGMA foreign_keys=OFF")
