"""`callboard db`: the database's schema."""

import typer

from backend.settings import Settings

app = typer.Typer(help="The database's schema.", no_args_is_help=True)


@app.callback()
def db() -> None:
    """The database's schema."""


@app.command()
def upgrade() -> None:
    """Bring the database to the newest schema; harmless when it is there already."""
    from backend.db import migrate

    migrate.upgrade(Settings().database)
    typer.echo("the database is at the newest schema")
