"""Bring a database to the newest schema, and tell whether it is there."""

import sqlite3
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event, text

from backend.db.engine import make_engine

ROOT = Path(__file__).resolve().parents[2]
UPGRADE_LOCK = 7_163_041
"""PostgreSQL advisory lock: several processes may start at once, one upgrades."""


def config() -> Config:
    """Alembic's configuration, wherever the process was started."""
    return Config(ROOT / "alembic.ini")


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database at `url` to `revision`, all or nothing; harmless when it is there already."""
    _run(url, lambda cfg: command.upgrade(cfg, revision))


def downgrade(url: str, revision: str) -> None:
    """Take the database at `url` back to `revision`."""
    _run(url, lambda cfg: command.downgrade(cfg, revision))


def check(url: str) -> None:
    """Raise where the tables in `backend.db` and the migrated schema differ."""
    _run(url, command.check)


def is_current(engine: Engine) -> bool:
    """Whether the database is at the newest revision."""
    with engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    return found == ScriptDirectory.from_config(config()).get_current_head()


def _run(url: str, action: Any) -> None:
    engine = make_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _forget_foreign_keys)
    cfg = config()
    try:
        with engine.execution_options(callboard_writing=True).begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
            cfg.attributes["connection"] = connection
            action(cfg)
    finally:
        engine.dispose()


def _forget_foreign_keys(connection: sqlite3.Connection, record: Any) -> None:
    # SQLite alters a table by copying it and dropping the old one, which would cascade.
    connection.execute("PRAGMA foreign_keys=OFF")
