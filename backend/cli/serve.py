"""`callboard up`, `web`, `worker` and `login-link`."""

import socket
from typing import Annotated

import typer

from backend.cli.installation import Installation
from backend.cli.terminal import fail
from backend.settings import Settings


def up() -> None:
    """Run everything on this machine, and print where to open it."""
    from backend.cli import up as installation

    settings = _settings()
    installation.run(settings)


def web(
    fd: Annotated[int | None, typer.Option(hidden=True, help="Listening socket of `callboard up`.")] = None,
) -> None:
    """Run a web process."""
    from backend.app import create_app
    from backend.cli.bind import refuse_open_door
    from backend.server import Server

    settings = _settings()
    refuse_open_door(settings)
    sockets = [socket.socket(fileno=fd)] if fd is not None else None
    Server(create_app(settings), settings).run(sockets=sockets)


def worker() -> None:
    """Run this host's worker. It needs `callboard[worker]`."""
    from workers import celery_app

    settings = _settings()
    if settings.environments_file is not None:
        from backend.specs.environments.own import OwnWorldsError, read_own

        try:
            read_own(settings.environments_file)
        except OwnWorldsError as error:
            raise fail(str(error)) from None
    celery_app.run(settings)


def login_link() -> None:
    """Print a link that logs in once."""
    from backend.cli.up import login_url

    settings = _settings()
    running = Installation(settings.home_dir).running()
    url = running.url if running else None
    typer.echo(login_url(settings, url or f"http://{settings.host}:{settings.port}"))


def _settings() -> Settings:
    from backend import logging

    settings = Settings()
    logging.configure(settings)
    return settings
