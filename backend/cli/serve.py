"""`callboard up`, `web`, `worker` and `login-link`."""

import socket
from typing import Annotated

import typer

from backend.cli import fail, require_engine
from backend.cli.database import require_schema
from backend.cli.installation import Installation
from backend.settings import Settings


def up() -> None:
    """Run everything on this machine, and print its address."""
    from backend.cli import up as installation

    settings = _settings()
    installation.run(settings)


def web(
    fd: Annotated[int | None, typer.Option(hidden=True, help="Listening socket of `callboard up`.")] = None,
) -> None:
    """Run a web process."""
    from backend.app import create_app
    from backend.connections import raise_descriptor_limit
    from backend.server import WebServer
    from workers.context import Context
    from workers.lease_expiry import LeaseExpiry
    from workers.sweeps import SweepReconciler

    require_schema(Settings(), allow_unreachable=True)
    settings = _settings()
    raise_descriptor_limit()
    refuse_open_bind(settings)
    sockets = [socket.socket(fileno=fd)] if fd is not None else None
    context = Context.from_settings(settings)
    threads = (LeaseExpiry(context), SweepReconciler(context))
    for thread in threads:
        thread.start()
    try:
        WebServer(create_app(settings), settings).run(sockets=sockets)
    finally:
        for thread in threads:
            thread.begin_stop()
        context.close()


def worker() -> None:
    """Run this host's worker; needs `callboard[worker]`."""
    require_engine()
    require_schema(Settings(), allow_unreachable=True)
    from workers import celery_app

    settings = _settings()
    if settings.environments_file is not None:
        from backend.specs.environments.custom import CustomEnvironmentsError, read_custom_environments

        try:
            read_custom_environments(settings.environments_file)
        except CustomEnvironmentsError as error:
            raise fail(str(error)) from None
    celery_app.run(settings)


def login_link() -> None:
    """Print a login link that works once."""
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


def refuse_open_bind(settings: Settings) -> None:
    """Refuse to listen for other machines while no admin has a password.

    Raises:
        typer.Exit: refused.
    """
    from backend.auth import repository as auth
    from backend.db.engine import opened, reading

    if settings.binds_loopback:
        return
    with opened(settings.database) as engine, reading(engine) as session:
        protected = auth.has_admin_with_password(session)
    if not protected:
        raise fail(
            f"CALLBOARD_HOST={settings.host} would admit other machines while no admin has a password: "
            "set a password first, with `callboard password`"
        )
