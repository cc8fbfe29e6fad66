"""`callboard password`: the owner's password, for an installation that other machines reach."""

import sys

import typer

from backend.cli.database import upgrade
from backend.cli.terminal import fail
from backend.settings import Settings

MIN_CHARACTERS = 10


def password() -> None:
    """Set the owner's password: typed twice at a terminal, else the first line of standard input."""
    from backend.auth import service as auth
    from backend.db.engine import make_engine, writing

    if sys.stdin.isatty():
        chosen = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        chosen = sys.stdin.readline().rstrip("\n")
    if len(chosen) < MIN_CHARACTERS:
        raise fail(f"password: should have at least {MIN_CHARACTERS} characters")
    settings = Settings()
    settings.home_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    upgrade(settings)
    engine = make_engine(settings.database)
    with writing(engine) as session:
        auth.set_owner_password(session, chosen)
    engine.dispose()
    typer.echo(f"{auth.OWNER} now has this password")
