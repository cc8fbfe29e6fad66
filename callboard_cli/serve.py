"""`callboard up`, `web`, `worker` and `login-link`."""

import ctypes
import fcntl
import gc
import hashlib
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Annotated

import typer

from backend.platform.settings import Settings
from callboard_cli import fail, require_engine
from callboard_cli.database import refuse_unknown_schema, require_schema
from callboard_cli.home import make_home
from callboard_cli.installation import Installation
from callboard_cli.listening import listen, refuse_open_bind, url_of

JOIN_TIMEOUT_S = 5.0
"""How long a transaction in progress may take at the end."""
LOCK_INTERVAL_S = 0.2
SWITCH_S = 0.0005
"""How long a thread of the web process may compute while another one waits for the interpreter. With Python's
5 ms the event loop, which needs it many times for each request, waits for every thread that computes."""
MEMORY_ARENAS = 2
_M_ARENA_MAX = -8
"""The option's number in glibc's malloc.h."""


def up() -> None:
    """Run everything on this machine, and print its address."""
    from callboard_cli import up as installation

    refuse_unknown_schema(Settings())  # before anything in the home changes
    settings = _settings()
    installation.run(settings)


def web(
    fd: Annotated[int | None, typer.Option(hidden=True, help="Listening socket of `callboard up`.")] = None,
) -> None:
    """Run a web process."""
    from backend.app import create_app
    from backend.coordination.context import Context
    from backend.coordination.lease_expiry import LeaseExpiry
    from backend.coordination.reconciler import Reconciler
    from backend.http.connections import raise_descriptor_limit
    from backend.server import WebServer

    require_schema(Settings(), allow_unreachable=True)
    settings = _settings()
    raise_descriptor_limit()
    limit_memory_arenas()
    sys.setswitchinterval(SWITCH_S)
    refuse_open_bind(settings)
    if fd is None:
        listen(settings).close()  # uvicorn's own message names no setting
    sockets = [socket.socket(fileno=fd)] if fd is not None else None
    context = Context.from_settings(settings)
    threads = (LeaseExpiry(context), Reconciler(context))
    for thread in threads:
        thread.start()
    try:
        server = WebServer(create_app(settings), settings)
        gc.freeze()  # else each full collection visits everything that was imported, within some request
        server.run(sockets=sockets)
    finally:
        for thread in threads:
            thread.begin_stop()
        for thread in threads:
            thread.join(JOIN_TIMEOUT_S)
        context.close()


def worker(
    wait_for_name: Annotated[
        float, typer.Option(hidden=True, help="Seconds for which a worker of the same name may still stop.")
    ] = 0.0,
) -> None:
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
    if settings.commands_file is not None:
        from backend.specs.host_commands import CommandsError, read_commands

        try:
            read_commands(settings.commands_file)
        except CommandsError as error:
            raise fail(str(error)) from None
    with host_name_lock(settings, wait_for_name):
        await_name(settings)
        celery_app.run(settings)


def login_link() -> None:
    """Print a login link that works once."""
    from callboard_cli.up import login_url

    settings = _settings()
    running = Installation(settings).running()
    if running:
        running.require_database(settings)
    url = running.url if running else None
    typer.echo(login_url(settings, url or url_of(settings.host, settings.port)))


def limit_memory_arenas() -> None:
    """Let the threads of this process share few arenas of glibc's allocator, each of which keeps what was
    freed in it: with one for each thread, the process stays large after requests that need much memory. Other
    libraries have no such option."""
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, MEMORY_ARENAS)


def _settings() -> Settings:
    from backend.platform import logging

    settings = Settings()
    logging.configure(settings)
    return settings


@contextmanager
def host_name_lock(settings: Settings, wait_s: float) -> Iterator[None]:
    """Refuse a second worker of the same name and home: each would take the other's runs for its own.

    The lock ends with its process, and what is forked from it does not inherit it.

    Raises:
        typer.Exit: another worker still has the name after `wait_s`.
    """
    make_home(settings.home_dir)
    name = hashlib.sha256(settings.host_name.encode()).hexdigest()[:16]
    deadline = monotonic() + wait_s
    with (settings.home_dir / f"worker-{name}.lock").open("w") as file:
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if monotonic() > deadline:
                    raise fail(
                        f"CALLBOARD_HOST_NAME: a worker named {settings.host_name} runs in "
                        f"{settings.home_dir} already; for a second one set another name, or raise "
                        "CALLBOARD_SLOTS of the first",
                        1,
                    ) from None
                sleep(LOCK_INTERVAL_S)
        yield


def await_name(settings: Settings) -> None:
    """Wait while a worker of another home may run under this host's name, for two leases at most.

    Raises:
        typer.Exit: one does, since it has sent a heartbeat meanwhile; or the id of this home's worker cannot
            be read or stored.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from backend.db.clock import database_now
    from backend.db.engine import opened, reading
    from backend.fleet.hosts import service as hosts
    from workers.host_facts import worker_id

    try:
        own = worker_id(settings.home_dir)
    except OSError as error:
        raise fail(f"{error.filename}: {error.strerror}", 1) from None
    last_heartbeat = None
    with opened(settings.database) as engine, suppress(SQLAlchemyError):  # the worker waits for the database
        while True:
            with reading(engine) as session:
                host = hosts.find(session, settings.host_name)
                taken = hosts.is_taken(host, own, database_now(session), settings.lease_s)
            if host is None or not taken:
                return
            if last_heartbeat not in (None, host.last_seen_at):
                raise fail(
                    f"CALLBOARD_HOST_NAME: a worker named {settings.host_name} runs in another home already; "
                    "set another name for this one",
                    1,
                )
            last_heartbeat = host.last_seen_at
            sleep(LOCK_INTERVAL_S)
