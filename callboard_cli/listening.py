"""The address that the web process listens on."""

import os
import socket
from contextlib import suppress
from ipaddress import ip_address
from time import sleep

import typer

from backend.platform.settings import Settings
from backend.specs.problems import quoted
from callboard_cli import fail

_DATABASE_RETRY_S = 2.0


def listen(settings: Settings) -> socket.socket:
    """The web process's listening socket; created in `up`, so that it survives a restart of the web process.

    Raises:
        typer.Exit: the port is used, or the address is not one of this machine.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except socket.gaierror as error:
        raise fail(
            f"CALLBOARD_HOST: {quoted(settings.host)} is no address of this machine: {error.strerror}"
        ) from None
    except OSError as error:
        where = f"port {settings.port} of {settings.host}"
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise fail(f"{where}: {why}; set CALLBOARD_PORT to another port, or to 0 for any free one") from None


def url_of(host: str, port: int) -> str:
    """The URL at which this machine reaches a web process that listens on `host`."""
    with suppress(ValueError):
        if ip_address(host).is_unspecified:
            host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def refuse_open_bind(settings: Settings) -> None:
    """Refuse to listen for other machines while no admin has a password.

    Waits for a database that is not available: nothing is served unchecked.

    Raises:
        typer.Exit: refused.
    """
    from sqlalchemy.exc import OperationalError

    from backend.access.auth import repository as auth
    from backend.db.engine import opened, reading

    if settings.binds_loopback:
        return
    reason = ""
    while True:
        try:
            with opened(settings.database) as engine, reading(engine) as session:
                protected = auth.has_admin_with_password(session)
            break
        except OperationalError as error:
            if reason != (reason := str(error.orig).strip().partition("\n")[0]):
                typer.echo(f"callboard: waiting for the database, which is not available: {reason}", err=True)
            sleep(_DATABASE_RETRY_S)
    if not protected:
        raise fail(
            f"CALLBOARD_HOST={settings.host} would admit other machines while no admin has a password: "
            "set a password first, with `callboard password`"
        )
