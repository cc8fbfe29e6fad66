"""The example for PgBouncer: everything that Callboard does works in its transaction mode."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Barrier, Timer

import httpx
import pytest
from sqlalchemy import Engine, literal, make_url, select, text
from sqlalchemy.exc import OperationalError

from backend.db import deadline
from backend.db import engine as database
from backend.db.deadline import Deadline
from backend.db.engine import is_query_timeout, make_engine, opened, reading, writing
from backend.db.migrate import is_current, upgrade
from backend.platform.principals import Role
from tests.support import servers
from tests.support.databases import Databases
from tests.support.installation import installation
from tests.support.rows import CARTPOLE, host_row
from tests.support.service import created_run, running_service
from tests.support.waiting import PATIENCE_S, until

EXAMPLE = Path(__file__).parents[2] / "examples" / "deploy" / "pgbouncer.ini"
N_SESSIONS = 3
"""So few sessions of the server that transactions of many connections share them."""
ENDLESS = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n")

pytestmark = [pytest.mark.service, pytest.mark.long]

Pooled = Callable[[bool], AbstractContextManager[str]]


@pytest.fixture
def pooled(postgres: Databases, short_tmp: Path) -> Pooled:
    """Runs PgBouncer before a new database; yields the database's URL."""
    program = servers.required("pgbouncer")

    @contextmanager
    def run(migrated: bool) -> Iterator[str]:
        with postgres.database(migrated=migrated) as url:
            yield from _behind(program, url, short_tmp)

    return run


def _behind(program: str, url: str, folder: Path) -> Iterator[str]:
    server, port = make_url(url), servers.free_port()
    where = Path(str(server.query["host"]))
    example = EXAMPLE.read_text()
    by = {
        "host=127.0.0.1 port=5432 dbname=callboard": f"host={where} dbname={server.database}",
        "listen_port = 6432": f"listen_port = {port}\nunix_socket_dir =",
        "/etc/pgbouncer/userlist.txt": f"{folder}/userlist.txt",
        "default_pool_size = 20": f"default_pool_size = {N_SESSIONS}",
    }
    for old, new in by.items():
        assert old in example, old
        example = example.replace(old, new)
    (folder / "pgbouncer.ini").write_text(example)
    (folder / "userlist.txt").write_text(f'"{server.username}" "secret"\n')
    folder.chmod(0o755)
    # It refuses to run as root; the server's user may use the server's socket.
    user = ["-u", where.owner()] if os.geteuid() == 0 else []
    with servers.running([program, *user, str(folder / "pgbouncer.ini")], folder / "pgbouncer.log"):
        through = f"postgresql+psycopg://{server.username}:secret@127.0.0.1:{port}/callboard"
        until(lambda: _answers(through), detail=(folder / "pgbouncer.log").read_text)
        yield through


def _answers(url: str) -> bool:
    try:
        with opened(url) as engine, engine.connect():
            return True
    except OperationalError:
        return False


def test_requests_of_many_connections_share_sessions_of_the_server(
    pooled: Pooled, redis_url: str, tmp_path: Path
) -> None:
    n_threads, n_rounds = 12, 12
    with pooled(True) as url, running_service(url, redis_url, tmp_path) as service:
        ready = Barrier(n_threads)

        def work(number: int) -> list[int]:
            with service.client_as(Role.OPERATOR) as script:
                ready.wait(PATIENCE_S)
                run = created_run(script.post("/api/v1/runs", json=CARTPOLE | {"seed": number}))
                path = f"/api/v1/runs/{run['id']}"
                answers: list[httpx.Response] = []
                for at in range(n_rounds):
                    answers += [
                        script.get("/api/v1/runs", params={"sort": "-created_at"}),
                        script.patch(path, json={"notes": f"{number} {at}"}),
                        script.get(path),
                    ]
                    assert answers[-1].json()["notes"] == f"{number} {at}"
                return [answer.status_code for answer in answers]

        with ThreadPoolExecutor(n_threads) as threads:
            codes = [code for codes in threads.map(work, range(n_threads)) for code in codes]
        assert set(codes) == {200}
        assert service.client.get("/api/v1/runs").json()["total"] == n_threads
        with opened(url) as engine:
            assert _settings(engine, 20) == {("0", "0")}  # of a worker: no timeout of the web process


def test_statement_that_is_committed_often_is_not_prepared(pooled: Pooled) -> None:
    with (
        pooled(True) as url,
        opened(url) as engine,
        engine.connect() as first,
        engine.connect() as second,
    ):
        for number in range(12):  # psycopg prepares a statement when it runs for the sixth time
            for connection in (first, second):
                assert connection.scalar(select(literal(number))) == number
                connection.commit()


def _settings(engine: Engine, n: int) -> set[tuple[str, str]]:
    """Timeouts of `n` transactions."""
    seen = set()
    for _ in range(n):
        with engine.connect() as connection:
            seen.add(_timeouts(connection.execute))
        engine.dispose()
    return seen


def _timeouts(execute: Callable[..., object]) -> tuple[str, str]:
    names = ("lock_timeout", "statement_timeout")
    row = execute(select(*(text(f"current_setting('{name}')") for name in names)))
    lock, statement = row.one()  # type: ignore[attr-defined]
    return lock, statement


def test_timeouts_are_those_of_a_transaction(pooled: Pooled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 4.0)
    with pooled(True) as url:
        web, worker = make_engine(url, with_timeouts=True), make_engine(url)
        for _ in range(3):
            with reading(web) as session:
                assert _timeouts(session.execute) == ("4s", "10s")
            with writing(web) as session:
                assert _timeouts(session.execute) == ("4s", "0")
            with writing(web, wait_s=0.25) as session:
                assert _timeouts(session.execute) == ("250ms", "0")
            with reading(worker) as session:
                assert _timeouts(session.execute) == ("0", "0")
        web.dispose()
        worker.dispose()


def test_long_query_is_cancelled_through_the_pooler(pooled: Pooled, monkeypatch: pytest.MonkeyPatch) -> None:
    with pooled(True) as url:
        engine = make_engine(url, with_timeouts=True)
        request = Deadline()
        with deadline.applied(request), reading(engine) as session:
            assert session.scalar(select(1)) == 1
            timer = Timer(0.2, request.end)
            timer.start()
            with pytest.raises(OperationalError) as ended:
                session.execute(ENDLESS)
            assert is_query_timeout(ended.value)
        monkeypatch.setattr(database, "QUERY_TIMEOUT_S", 0.5)
        with reading(engine) as session:
            with pytest.raises(OperationalError) as late:
                session.execute(ENDLESS)
            assert is_query_timeout(late.value)
            session.rollback()
            assert session.scalar(select(1)) == 1
        with writing(engine) as session:
            session.add(host_row("h"))
        engine.dispose()


def test_processes_that_start_at_once_upgrade_one_after_the_other(pooled: Pooled) -> None:
    with pooled(False) as url:
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(upgrade, [url] * 3))
        with opened(url) as engine:
            assert is_current(engine)


def test_installation_trains_a_run(pooled: Pooled, short_tmp: Path) -> None:
    with pooled(False) as url, installation(short_tmp / "home", database_url=url) as running:
        client = running.log_in()
        run = created_run(client.post("/api/v1/runs", json=CARTPOLE | {"stop": {"agent_steps": 2_000}}))
        path = f"/api/v1/runs/{run['id']}"
        ended = until(
            lambda: (now := client.get(path).json())["state"] in ("finished", "failed") and now, every_s=0.2
        )
        assert ended["state"] == "finished", ended
        assert ended["agent_steps"] >= 2_000
        series = client.get("/api/v1/series", params={"run": run["id"], "metric": "rollout/episode_return"})
        assert series.is_success
