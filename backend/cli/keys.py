"""The key a command shows to a server, and `callboard token`: keys for scripts."""

import os
from collections.abc import Generator
from datetime import timedelta
from typing import Annotated

import httpx
import typer

from backend.auth.roles import Role
from backend.cli.terminal import fail
from backend.settings import Settings

LOCAL_LIFETIME = timedelta(days=30)

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
    made = _make(Settings(), user, name, role, lifetime)
    if made is None:
        raise fail(f"user: there is no user {user!r}")
    typer.echo(made)


class GivenKey(httpx.Auth):
    """A key someone gave."""

    def __init__(self, key: str) -> None:
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Show it."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        yield request


class LocalKey(httpx.Auth):
    """The key to this machine's own server: kept under home, made when there is none that fits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = settings.home_dir / "command-line-key"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Show it, or a new one."""
        if self._path.exists():
            request.headers["Authorization"] = f"Bearer {self._path.read_text()}"
            if (yield request).status_code != httpx.codes.UNAUTHORIZED:
                return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = _make(self._settings, "owner", "command line", Role.OPERATOR, LOCAL_LIFETIME) or ""
        with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(key)
        request.headers["Authorization"] = f"Bearer {key}"
        yield request


def _make(settings: Settings, user: str, name: str, role: Role, lifetime: timedelta | None) -> str | None:
    from backend.auth import service as auth
    from backend.db.engine import make_engine, writing

    engine = make_engine(settings.database)
    with writing(engine) as session:
        key = auth.create_token_for(session, user, name, role, lifetime)
    engine.dispose()
    return key
