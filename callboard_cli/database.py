"""`callboard db`: the database schema."""

import os
from pathlib import Path

import typer

from backend.platform.settings import Settings
from callboard_cli import CommandGroup, fail

NO_DATABASE = "correct CALLBOARD_HOME or CALLBOARD_DATABASE_URL, or create it with `callboard db upgrade`"

app = typer.Typer(cls=CommandGroup, help="The database schema.", no_args_is_help=True)


@app.callback()
def db() -> None:
    """The database schema."""


@app.command("upgrade")
def upgrade_command() -> None:
    """Migrate the database to the latest schema; does nothing if it is up to date."""
    settings = Settings()
    missing = missing_file(settings)
    upgrade(settings)
    typer.echo(f"created {missing}" if missing else "the database has the latest schema")


def missing_file(settings: Settings) -> Path | None:
    """Path of the SQLite file if it does not exist yet: a connection would create it. None otherwise.

    Raises:
        typer.Exit: its folder cannot be read.
    """
    from sqlalchemy import make_url

    url = make_url(settings.database)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    file = Path(url.database)
    try:
        return None if file.exists() else file
    except OSError as error:
        raise fail(f"the database {file} cannot be read: {error.strerror}", 1) from None


def database_digest(settings: Settings) -> str:
    """Digest that identifies the database, however the path of a SQLite file is spelt; it hides passwords."""
    import hashlib

    from sqlalchemy import make_url

    url = make_url(settings.database)
    if url.get_backend_name() == "sqlite" and url.database:
        return hashlib.sha256(os.fsencode(Path(url.database).resolve())).hexdigest()
    return hashlib.sha256(settings.database.encode()).hexdigest()


def upgrade(settings: Settings) -> None:
    """Migrate the database to the latest schema.

    Raises:
        typer.Exit: it cannot be created or reached, or its schema is of an unknown version of Callboard.
    """
    from sqlalchemy.exc import OperationalError

    from backend.db import migrate

    if missing := missing_file(settings):
        try:
            missing.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise fail(f"the database {missing} cannot be created: {error.strerror}", 1) from None
    try:
        migrate.upgrade(settings.database)
    except migrate.UnknownSchemaError as error:
        raise fail(str(error), 1) from None
    except OperationalError as error:
        raise fail(f"the database is not available: {str(error).splitlines()[0]}", 1) from None


def refuse_unknown_schema(settings: Settings) -> None:
    """Check that the database, if there is one, is of a version whose schema this one knows.

    Raises:
        typer.Exit: the database is of another version.
    """
    from sqlalchemy.exc import OperationalError

    from backend.db import migrate
    from backend.db.engine import opened

    if missing_file(settings):
        return
    try:
        with opened(settings.database) as engine:
            migrate.refuse_unknown_schema(engine)
    except migrate.UnknownSchemaError as error:
        raise fail(str(error), 1) from None
    except OperationalError:
        return  # `upgrade` and `require_schema` report it


def require_schema(settings: Settings, *, allow_unreachable: bool = False) -> None:
    """Check that the database has the schema of this version.

    Args:
        settings: the settings of this installation.
        allow_unreachable: return if the database cannot be reached.

    Raises:
        typer.Exit: it has another one or none, or cannot be reached.
    """
    import logging

    from sqlalchemy.exc import OperationalError

    from backend.db.engine import make_engine
    from backend.db.migrate import is_current

    logging.getLogger("alembic").setLevel(logging.WARNING)
    refuse_unknown_schema(settings)
    if missing := missing_file(settings):
        raise fail(f"there is no database {missing}: {NO_DATABASE}", 1)
    engine = make_engine(settings.database)
    try:
        current = is_current(engine)
    except OperationalError as error:
        if allow_unreachable:
            return
        raise fail(f"the database is not available: {str(error).splitlines()[0]}", 1) from None
    finally:
        engine.dispose()
    if not current:
        raise fail("the database has no schema, or one of another version: run `callboard db upgrade`", 1)
