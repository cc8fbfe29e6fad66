"""`callboard token` and `callboard password`: credentials of this machine's server."""

import sys
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer
from pydantic import ValidationError

from backend.platform.principals import EXTERNAL_RUNS, Role
from backend.platform.settings import Settings
from backend.specs.problems import message_of, quoted
from callboard_cli import CommandGroup, fail
from callboard_cli.database import require_schema, upgrade
from callboard_cli.home import make_home

MIN_PASSWORD_CHARACTERS = 10


class Scope(StrEnum):
    """What a token is limited to."""

    EXTERNAL = EXTERNAL_RUNS


app = typer.Typer(cls=CommandGroup, help="API tokens.", no_args_is_help=True)


@app.callback()
def token() -> None:
    """API tokens."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the token.")],
    user: Annotated[str, typer.Option(help="User that it belongs to.")] = "owner",
    role: Annotated[Role, typer.Option(help="Role of the token.")] = Role.OPERATOR,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="Days until it expires; never by default.")
    ] = None,
    scope: Annotated[
        Scope | None,
        typer.Option(help="external_runs: may only create external runs and write to them."),
    ] = None,
) -> None:
    """Create a token; it is shown only once."""
    from backend.access.tokens.schemas import TokenRequest

    try:
        name = TokenRequest(name=name.strip()).name
    except ValidationError as error:
        raise fail(f"name: {message_of(error.errors()[0])}") from None
    if scope is not None and not role.covers(Role.OPERATOR):
        raise fail(f"--scope: requires the role {Role.OPERATOR}; the token has the role {role}")
    lifetime = timedelta(days=days) if days else None
    token = create_token(Settings(), user, name, role, lifetime, scope.value if scope else None)
    if token is None:
        raise fail(f"--user: user {quoted(user)} does not exist; create it on the Settings page first")
    typer.echo(token)


def create_token(
    settings: Settings,
    user: str,
    name: str,
    role: Role,
    lifetime: timedelta | None,
    scope: str | None = None,
) -> str | None:
    """Create a token; None if there is no such user."""
    from backend.access.audit import service as audit
    from backend.access.auth import service as auth
    from backend.db.engine import opened, writing

    require_schema(settings)
    with opened(settings.database) as engine, writing(engine) as session:
        token = auth.create_token_for(session, user, name, role, lifetime, scope)
        if token is not None:
            details = {"user": user, "name": name, "role": role}
            audit.record_command(session, "callboard token create", "create_token", details)
        return token


def password(
    if_unset: Annotated[
        bool, typer.Option("--if-unset", help="Change nothing if the owner has a password.")
    ] = False,
) -> None:
    """Set the owner's password: typed twice at a terminal, else the first line of standard input."""
    from backend.access.audit import service as audit
    from backend.access.auth import repository
    from backend.access.auth import service as auth
    from backend.access.auth.passwords import MAX_CHARACTERS, hash_password, require_uncommon
    from backend.db.engine import opened, reading, writing
    from backend.platform.errors import Invalid

    settings = Settings()
    if if_unset:
        make_home(settings.home_dir)
        upgrade(settings)
        with opened(settings.database) as engine, reading(engine) as session:
            owner = repository.user_by_name(session, auth.OWNER)
            if owner is not None and owner.password_hash is not None:
                typer.echo(f"{auth.OWNER} has a password already; nothing changed")
                return
    if sys.stdin.isatty():
        new = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        new = sys.stdin.readline().rstrip("\n")
    if not MIN_PASSWORD_CHARACTERS <= len(new) <= MAX_CHARACTERS:
        raise fail(f"password: must have {MIN_PASSWORD_CHARACTERS} to {MAX_CHARACTERS} characters")
    try:
        require_uncommon("password", new, auth.OWNER)
    except Invalid as error:
        raise fail(error.detail) from None
    make_home(settings.home_dir)
    upgrade(settings)
    new_hash = hash_password(new)  # slow: before anything is locked
    with opened(settings.database) as engine, writing(engine) as session:
        auth.set_owner_password(session, new_hash)
        audit.record_command(session, "callboard password", "change_password", {"user": auth.OWNER})
    typer.echo(f"password of {auth.OWNER} changed")
