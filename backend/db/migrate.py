"""The schema of the database: its creation, and checks of its revision."""

from functools import cache
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from backend.db.base import Base
from backend.db.engine import make_engine
from backend.platform import files

UPGRADE_LOCK = 7_163_041
"""PostgreSQL advisory lock: if several processes start simultaneously, one of them upgrades."""


class UnknownSchemaError(Exception):
    """The tables are of a version whose schema this one does not know. Nothing was changed."""


def config() -> Config:
    """Alembic's configuration, independent of the working directory."""
    cfg = Config()
    cfg.set_main_option("script_location", str(files.migrations()).replace("%", "%%"))
    cfg.set_main_option("path_separator", "os")
    return cfg


def upgrade(url: str) -> None:
    """Upgrade the database at `url`, in one transaction. Does nothing if it has the schema of this version
    already.

    Raises:
        UnknownSchemaError: its tables are of another version.
    """

    def refuse_or_upgrade(cfg: Config) -> None:
        _refuse_unknown_schema(cfg.attributes["connection"])
        command.upgrade(cfg, "head")

    _run(url, refuse_or_upgrade)


def check(url: str) -> None:
    """Raise an error if the tables in `backend.db` differ from the migrated schema."""
    _run(url, command.check)


def is_current(engine: Engine) -> bool:
    """Whether the database is at the latest revision."""
    with engine.connect() as connection:
        revision = MigrationContext.configure(connection).get_current_revision()
    return revision == _latest_revision()


@cache
def _latest_revision() -> str | None:
    """The latest of the migrations that this process can run. It reads them once: that takes 10 ms, and pages
    ask for the readiness all the time."""
    return ScriptDirectory.from_config(config()).get_current_head()


def known_revisions() -> set[str]:
    """The schemas that this version can upgrade."""
    return {script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()}


def refuse_unknown_schema(engine: Engine) -> None:
    """Check that this version knows the schema of the database, if it has one.

    Raises:
        UnknownSchemaError: its tables are of another version.
    """
    with engine.connect() as connection:
        _refuse_unknown_schema(connection)


def _refuse_unknown_schema(connection: Connection) -> None:
    revisions = MigrationContext.configure(connection).get_current_heads()
    if unknown := sorted(set(revisions) - known_revisions()):
        tables = f"the schema {', '.join(unknown)}"
    elif not revisions and Base.metadata.tables.keys() & set(inspect(connection).get_table_names()):
        tables = "tables without a schema version"
    else:
        return
    url = connection.engine.url
    where = url.database if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)
    raise UnknownSchemaError(
        f"the database {where} has {tables}, of another version of Callboard, and is left as it is: set "
        "CALLBOARD_HOME to another folder (or CALLBOARD_DATABASE_URL to another database), or export its "
        "runs with that version"
    )


def _run(url: str, action: Any) -> None:
    engine = make_engine(url)
    cfg = config()
    try:
        with engine.execution_options(callboard_writing=True).begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
            cfg.attributes["connection"] = connection
            action(cfg)
    finally:
        engine.dispose()
