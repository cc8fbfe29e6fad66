"""`callboard db`: the database's schema."""

import typer

from backend.cli.terminal import fail
from backend.settings import Settings

app = typer.Typer(help="The database's schema.", no_args_is_help=True)


@app.callback()
def db() -> None:
    """The database's schema."""


@app.command("upgrade")
def upgrade_command() -> None:
    """Bring the database to the newest schema; harmless when it is there already."""
    upgrade(Settings())
    typer.echo("the database is at the newest schema")


def upgrade(settings: Settings) -> None:
    """Bring the database to the newest schema.

    Raises:
        typer.Exit: it cannot be reached, or is newer than this version of Callboard.
    """
    from alembic.util import CommandError
    from sqlalchemy.exc import OperationalError

    from backend.db import migrate

    try:
        migrate.upgrade(settings.database)
    except CommandError as error:
        raise fail(f"the database is of another version of Callboard: {error}", 1) from None
    except OperationalError as error:
        raise fail(f"the database: {str(error).splitlines()[0]}", 1) from None
