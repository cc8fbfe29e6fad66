"""Fixtures that all tests share: real databases (each test on SQLite and on PostgreSQL) and a real Redis.

- `database_url`: a migrated, empty database for the test; runs the test once a database kind. PostgreSQL is
  a server, so on it every test counts as `service`.
- `own_database_url`: one whose schema the test may change.
- `engine`: an SQLAlchemy engine on it.
- `redis_url`: a real Redis, emptied before the test.
- `s3_url`: a folder of its own on a real S3 server.
- `browser`: a headless Chromium.
- `service`: the web service in this process, on `database_url` and `redis_url`; `service.client` is an HTTP
  client logged in as admin, `service.engine` its database, `service.artifacts` its files,
  `service.client_as(role)` a script with a token of that role. `service.url` starts a server.
- `sqlite_service`: the same on SQLite only, for what does not depend on the database.

`make test` runs the tests without the marks `long` and `benchmark`, `make test-long` those marked `long`.
"""

import os
import re
import shutil
import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import structlog
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, make_url

from backend.db import engine as database
from backend.db.engine import make_engine
from tests.support.databases import (
    POSTGRES_URL,
    Databases,
    migrated_sqlite,
    postgres_server,
    short_folder,
)
from tests.support.waiting import PATIENCE_S, await_worker_threads

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    # Imported by the fixtures that need them: units need none, and these load the whole web service.
    from tests.support.redis_server import RedisServer
    from tests.support.s3_server import S3Server
    from tests.support.service import RunningService

# Through the standard library, whose lines pytest keeps: structlog's own way prints to whatever stdout is,
# and pytest swaps it while the threads of a service print.
structlog.configure(
    processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.render_to_log_kwargs],
    logger_factory=structlog.stdlib.LoggerFactory(),
)

# Engines of tests yield to nobody: beside other tests they would hardly get a processor.
os.environ["CALLBOARD_ENGINE_NICENESS"] = "0"

# Who waits for a write lock waits until its holder, which has no processor or a slow disk, is done.
database.BUSY_TIMEOUT_S = database.LOCK_TIMEOUT_S = PATIENCE_S

# The same examples in every run, on machines of any speed.
settings.register_profile(
    "gate",
    derandomize=True,
    deadline=None,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", parent=settings.get_profile("gate"), max_examples=10)
settings.load_profile("gate")

STARTS_PROCESSES = {"service", "browser", "learning", "long", "benchmark"}
"""Marks of tests that may start processes. All others are units."""

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.service)]

ON_BOTH_DATABASES = re.compile(
    r"tests/(backend/(db|fleet/jobs)/|.*/test_repository\.py|backend/runs/runs/test_lineage\.py"
    r"|backend/analysis/metrics/test_(charts|seed_groups)\.py|backend/coordination/test_claims\.py"
    r"|workers/test_recorder\.py)"
)
"""Where SQL is the subject: `make test` runs these on PostgreSQL as well as on SQLite."""

_unit: list[str] = []
"""The unit test that runs now."""


def _refuse_processes(event: str, arguments: Any) -> None:
    if event == "subprocess.Popen" and list(arguments[1])[:1] == ["git"]:
        return  # the commit of an attempt's provenance, within milliseconds
    if _unit and event in {"subprocess.Popen", "os.fork", "os.posix_spawn", "os.system"} and not _importing():
        raise AssertionError(f"{_unit[0]} starts a process ({event}): mark it `service`")


def _importing() -> bool:
    """Whether a library looks for its shared objects while it is imported, as MuJoCo's does."""
    return any(frame.filename == "<frozen importlib._bootstrap>" for frame in traceback.extract_stack())


sys.addaudithook(_refuse_processes)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--live-minutes", type=float, default=1.0, help="how long the benchmark of live data lasts"
    )


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `long` the PostgreSQL form of tests whose subject is not SQL; put the browser tests first."""
    for item in items:
        if _on_postgresql(item) and not ON_BOTH_DATABASES.match(item.nodeid):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


def _on_postgresql(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and "postgresql" in (
        callspec.params.get("database_url"),
        callspec.params.get("own_database_url"),
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    if STARTS_PROCESSES.isdisjoint(mark.name for mark in item.iter_markers()):
        _unit[:] = [item.nodeid]
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    _unit.clear()
    if "torch" in sys.modules:
        # A command called in this process may have switched subnormal numbers off, as engines do.
        sys.modules["torch"].set_flush_denormal(False)
    return (yield)


@pytest.fixture(autouse=True)
def no_processes_in_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what `multiprocessing` starts past the interpreter's audit events."""
    start = BaseProcess.start

    def refuse(process: BaseProcess) -> None:
        _refuse_processes("os.fork", ())
        start(process)

    monkeypatch.setattr(BaseProcess, "start", refuse)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist=loadfile`, run the browser tests as two files, each with one installation and one browser.

    `xdist_group` marks do nothing: xdist 3.8 writes them to an attribute that pytest 9.2 does not read.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return f"browser {len(path) % 2}" if path.startswith("tests/browser/") else path

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Databases]:
    """A PostgreSQL server: that of `make test`, or one of this session."""
    given = os.environ.get(POSTGRES_URL)
    with nullcontext(given) if given else postgres_server() as url:
        databases = Databases(make_url(url))
        yield databases
        databases.close()


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A temporary folder whose path leaves room for a socket's name."""
    with short_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file."""
    return migrated_sqlite(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A browser for a file's tests. Until it ends, Playwright's event loop runs in this thread, where no test
    can then run another."""
    from tests.support.chromium import chromium

    with chromium() as running:
        yield running


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a migrated, empty database."""
    if request.param == "sqlite":
        path = tmp_path / "callboard.sqlite3"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
    else:
        yield request.getfixturevalue("postgres").emptied_database()


@pytest.fixture(params=DATABASES)
def own_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a migrated, empty database that the test may spoil."""
    if request.param == "sqlite":
        path = tmp_path / "own.sqlite3"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
    else:
        with request.getfixturevalue("postgres").database() as url:
            yield url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on a migrated, empty database."""
    engine = make_engine(database_url)
    yield engine
    await_worker_threads()
    engine.dispose()


@pytest.fixture(scope="session")
def redis_server() -> "Iterator[RedisServer]":
    """One Redis server for the whole session; a test that stops it starts it again."""
    from tests.support.redis_server import RedisServer

    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        yield server
        server.stop()


@pytest.fixture
def redis_url(redis_server: "RedisServer") -> str:
    """URL of a running, empty Redis."""
    redis_server.flush()
    return redis_server.url


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[S3Server]":
    """One S3 server for the whole session."""
    from tests.support.s3_server import S3Server

    server = S3Server(tmp_path_factory.mktemp("s3") / "log.txt")
    yield server
    server.stop()


@pytest.fixture
def s3_url(s3_server: "S3Server", monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a folder in a bucket; the environment says where its server is."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return f"{s3_server.url}/{uuid4().hex}"


@pytest.fixture
def service(database_url: str, redis_url: str, tmp_path: Path) -> "Iterator[RunningService]":
    """The web service, running."""
    from tests.support.service import running_service

    with running_service(database_url, redis_url, tmp_path) as running:
        yield running


@pytest.fixture
def sqlite_service(sqlite_template: Path, redis_url: str, tmp_path: Path) -> "Iterator[RunningService]":
    """The web service, running on SQLite only: for what does not depend on the database."""
    from tests.support.service import running_service

    path = tmp_path / "callboard.sqlite3"
    shutil.copyfile(sqlite_template, path)
    with running_service(f"sqlite:///{path}", redis_url, tmp_path) as running:
        yield running
