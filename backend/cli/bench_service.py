"""What `callboard bench service` measures, on which databases."""

import tempfile
from collections.abc import Generator
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from backend.cli import bench_ingest, private_servers
from backend.cli.terminal import fail
from backend.db import migrate
from backend.db.engine import make_engine, reading
from backend.hosts import repository as hosts
from backend.metrics import bench as series
from backend.runs import bench as lists
from backend.runs import repository as runs
from backend.settings import Settings


def databases(given: str | None) -> Generator[tuple[str, str]]:
    """Name and URL of each database, there while it is measured."""
    if given is not None:
        yield given.partition(":")[0].partition("+")[0], given
        return
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        yield "sqlite", f"sqlite:///{folder}/bench.sqlite3"
    if private_servers.has_postgres():
        with private_servers.postgres() as url:
            yield "postgresql", url


def measure(database_url: str) -> dict[str, float]:
    """All figures, on a database without runs; they are medians."""
    _prepare(database_url)
    with tempfile.TemporaryDirectory(prefix="cb-") as home:
        socket = Settings(home=Path(home)).redis_socket
        with private_servers.redis(socket) as redis_url:
            settings = Settings(home=Path(home), database_url=database_url, redis_url=redis_url)
            found = bench_ingest.bench(settings)
    engine = make_engine(database_url)
    try:
        return found | series.bench(engine) | lists.bench(engine)
    finally:
        engine.dispose()


def _prepare(database_url: str) -> None:
    try:
        migrate.upgrade(database_url)
        engine = make_engine(database_url)
        with reading(engine) as session:
            used = any(runs.count_by_state(session).values()) or bool(hosts.all_hosts(session))
        engine.dispose()
    except (SQLAlchemyError, OSError) as error:
        raise fail(f"--database-url: {str(error).splitlines()[0]}") from None
    if used:
        raise fail("--database-url: this database has runs or hosts; name an empty one")
