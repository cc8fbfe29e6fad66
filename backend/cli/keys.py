"""`callboard token`: keys for scripts."""

from datetime import timedelta
from typing import Annotated

import typer

from backend.auth.roles import Role
from backend.cli.terminal import fail
from backend.settings import Settings

app = typer.Typer(help="Keys for scripts.", no_args_is_help=True)


@app.callback()
def token() -> None:
    """Keys for scripts."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    user: Annotated[str, typer.Option(help="Whose key it is.")] = "owner",
    role: Annotated[Role, typer.Option(help="What it may do.")] = Role.OPERATOR,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="It never ends by itself without.")
    ] = None,
) -> None:
    """Make a key for this machine's server and print it; it is told only now."""
    lifetime = timedelta(days=days) if days else None
    made = make_key(Settings(), user, name, role, lifetime)
    if made is None:
        raise fail(f"user: there is no user {user!r}")
    typer.echo(made)


def make_key(settings: Settings, user: str, name: str, role: Role, lifetime: timedelta | None) -> str | None:
    """A new key; none where there is no such user."""
    from backend.auth import service as auth
    from backend.db.engine import make_engine, writing

    engine = make_engine(settings.database)
    with writing(engine) as session:
        key = auth.create_token_for(session, user, name, role, lifetime)
    engine.dispose()
    return key
