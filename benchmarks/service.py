"""The measurements of `python -m benchmarks service`, and their databases."""

import tempfile
from collections.abc import Generator
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from backend.db import migrate
from backend.db.engine import make_engine, reading
from backend.fleet.hosts import repository as hosts
from backend.platform.settings import Settings, sqlite_url
from backend.runs.runs import repository as runs
from benchmarks import ingest as bench_ingest
from benchmarks import metrics as series
from benchmarks import runs as lists
from callboard_cli import fail, servers


def databases(given: str | None) -> Generator[tuple[str, str]]:
    """Name and URL of each database; it exists until the next is requested."""
    if given is not None:
        yield given.partition(":")[0].partition("+")[0], given
        return
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        yield "sqlite", sqlite_url(Path(folder) / "bench.sqlite3")
    if servers.has_postgres():
        with servers.temporary_postgres() as url:
            yield "postgresql", url


def measure(database_url: str) -> dict[str, float]:
    """All measurements, as medians, on a database without runs."""
    _prepare(database_url)
    with tempfile.TemporaryDirectory(prefix="cb-") as home:
        socket = Settings(home=Path(home)).redis_socket
        with servers.temporary_redis(socket) as redis_url:
            settings = Settings(home=Path(home), database_url=database_url, redis_url=redis_url)
            results = bench_ingest.bench(settings)
    engine = make_engine(database_url)
    try:
        return results | series.bench(engine) | lists.bench(engine)
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
        raise fail("--database-url: this database has runs or hosts; use an empty one")
