import asyncio
import os
import platform
import shutil
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import anyio
import httpx
import pytest
from sqlalchemy import text, update

from backend import __version__
from backend.app import create_app
from backend.db import Run, Transition
from backend.db.clock import database_now
from backend.db.engine import opened, writing
from backend.http import limits
from backend.http.transfer import JsonDocument
from backend.platform.principals import Role
from backend.platform.settings import Settings
from backend.specs.states import RunState
from backend.upkeep import health
from backend.upkeep.instruments import ServiceCollector
from tests.support import asynchronous
from tests.support.databases import Databases
from tests.support.redis_server import RedisServer
from tests.support.rows import add_host, host_row, make_run
from tests.support.service import RunningServer, RunningService, running_service
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.service


def test_health_and_readiness_need_no_login(service: RunningService) -> None:
    with service.new_client() as anyone:
        assert anyone.get("/healthz").json() == {"status": "ok"}
        # Redis may take longer to answer than the half second that it has.
        ready = until(lambda: answer if (answer := anyone.get("/readyz")).is_success else None)
        assert (ready.status_code, ready.json()["ready"]) == (200, True)


def test_health_needs_no_thread(tmp_path: Path) -> None:
    """Requests that wait for the database may hold every thread."""
    leave = Event()

    async def ask() -> int:
        threads = anyio.to_thread.current_default_thread_limiter()
        threads.total_tokens = 1
        busy = asyncio.create_task(anyio.to_thread.run_sync(leave.wait, PATIENCE_S))
        while not threads.borrowed_tokens:
            await asyncio.sleep(0)
        transport = httpx.ASGITransport(create_app(Settings(home=tmp_path)))
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return (await asyncio.wait_for(client.get("/healthz"), PATIENCE_S / 2)).status_code
        finally:
            leave.set()
            await busy

    assert asynchronous.run(ask()) == 200


def test_readiness_is_503_with_an_old_schema(own_database_url: str, redis_url: str, tmp_path: Path) -> None:
    with running_service(own_database_url, redis_url, tmp_path) as service:
        with service.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '0100'"))
        answer = service.client.get("/readyz")
    assert answer.status_code == 503
    states = {"ready": False, "database": True, "migrated": False, "redis": True, "disk": True}
    states |= {"host_disks": True}
    assert answer.json() == states | {"problems": [health.OTHER_SCHEMA]}


def test_readiness_names_a_full_disk(sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test says that the disk is full: a real one that is needs the right to mount it."""

    def full(*, dir: Path) -> BinaryIO:
        return Path("/dev/full").open("wb", buffering=0)

    monkeypatch.setattr(health, "TemporaryFile", full)
    answer = sqlite_service.client.get("/readyz")
    assert (answer.status_code, answer.json()["disk"]) == (503, False)
    (problem,) = answer.json()["problems"]
    assert problem.startswith("disk of CALLBOARD_HOME: No space left on device")


@pytest.mark.long
def test_readiness_is_503_while_redis_hangs(
    sqlite_service: RunningService, redis_server: RedisServer
) -> None:
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        answer = sqlite_service.client.get("/readyz")
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)
    assert answer.status_code == 503
    assert answer.json()["redis"] is False
    until(lambda: sqlite_service.client.get("/readyz").json()["ready"])


def test_answers_for_everybody_are_computed_once_whoever_asks(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SHARED_FOR_S", PATIENCE_S)
    monkeypatch.setattr(sqlite_service.app_state.limits.shared, "_recent", limits.SharedAnswers()._recent)  # noqa: SLF001
    computed: Counter[str] = Counter()
    counters = sqlite_service.app_state.counters
    asked = (
        ("/readyz", health, "_readiness"),
        ("/metrics", type(counters), "exposition"),
        ("/openapi.json", JsonDocument, "of_json"),
    )
    for path, owner, name in asked:
        plain = getattr(owner, name)

        def counted(*given: Any, path: str = path, plain: Any = plain) -> Any:
            computed[path] += 1
            return plain(*given)

        monkeypatch.setattr(owner, name, counted)

    monkeypatch.setattr(sqlite_service.app, "openapi", dict)
    with ThreadPoolExecutor(10) as threads, sqlite_service.new_client() as anyone:
        for path, *_ in asked:
            assert len(set(threads.map(lambda path: anyone.get(path).content, [path] * 30))) == 1
    assert computed == dict.fromkeys((path for path, *_ in asked), 1)


def test_requests_succeed_after_database_drops_connections(
    postgres: Databases, redis_url: str, tmp_path: Path
) -> None:
    with postgres.database() as url, running_service(url, redis_url, tmp_path) as service:
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name <> 'admin' "
            f"AND datname = '{service.engine.url.database}'"
        )
        assert service.client.get("/api/v1/runs").status_code == 200


def test_requests_return_503_when_database_is_unreachable(tmp_path: Path, redis_url: str) -> None:
    settings = Settings(
        home=tmp_path, port=0, redis_url=redis_url, database_url="postgresql+psycopg://x@127.0.0.1:1/x"
    )
    with RunningServer(settings) as url:
        ready = httpx.get(f"{url}/readyz", timeout=PATIENCE_S)
        assert (ready.status_code, ready.json()["database"]) == (503, False)
        cookie = {"Cookie": f"callboard_session_{httpx.URL(url).port}=x", "X-Page-Secret": "x"}
        answer = httpx.get(f"{url}/api/v1/runs", headers=cookie, timeout=PATIENCE_S)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert httpx.get(f"{url}/healthz", timeout=PATIENCE_S).status_code == 200


@pytest.mark.parametrize("given", [{"host": "0.0.0.0"}, {"trusted_proxies": ["192.0.2.1"]}])
def test_metrics_need_a_token_if_other_machines_can_reach_them(
    sqlite_service: RunningService, given: dict[str, Any], redis_url: str, tmp_path: Path
) -> None:
    database = sqlite_service.settings.database
    settings = Settings(home=tmp_path, database_url=database, redis_url=redis_url, port=0, **given)
    with RunningServer(settings) as url, sqlite_service.client_as(Role.VIEWER) as scraper:
        answer = httpx.get(f"{url}/metrics", timeout=PATIENCE_S)
        assert (answer.status_code, "callboard_" in answer.text) == (401, False)
        answer = httpx.get(f"{url}/metrics", headers=scraper.headers, timeout=PATIENCE_S)
        assert answer.status_code == 200
        assert httpx.get(f"{url}/healthz", timeout=PATIENCE_S).status_code == 200


def test_metrics_count_requests_by_route_and_runs_by_state(service: RunningService) -> None:
    def answered(text: str) -> float:
        sample = 'callboard_http_requests_total{method="GET",route="/runs/{run_id}",status="200"} '
        lines = [line for line in text.splitlines() if line.startswith(sample)]
        return float(lines[0].removeprefix(sample)) if lines else 0.0

    run = make_run(service.engine, RunState.RUNNING)
    before = answered(service.client.get("/metrics").text)
    service.client.get(f"/api/v1/runs/{run.id}")

    def counted() -> str | None:
        text = service.client.get("/metrics").text
        return text if answered(text) == before + 1 else None

    text = until(counted)  # they may be a second old
    assert 'callboard_runs{state="running"} 1.0' in text
    assert 'callboard_runs{state="lost"} 0.0' in text
    assert run.id not in text
    assert "_created" not in text, "a line for each counter and route that nobody reads"


def test_metrics_say_versions_rates_hosts_and_how_long_the_queue_has_waited(service: RunningService) -> None:
    here, script, counted = (make_run(service.engine, RunState.RUNNING) for _ in range(3))
    waiting = make_run(service.engine, RunState.QUEUED, queue="gpu")
    with writing(service.engine) as session:
        now = database_now(session)
        session.add(host_row("lab-1", last_seen_at=now, load={"recorder_lag_s": 2.5}))
        for run, host, rate in ((here, "lab-1", 1_500.0), (script, None, 40.0), (counted, None, 7.0)):
            row = session.get_one(Run, run.id)
            row.host, row.agent_steps_per_s = host, rate
        session.get_one(Run, counted.id).step_unit = "iterations"
        since = now - timedelta(hours=1)
        session.execute(update(Transition).where(Transition.run_id == waiting.id).values(time=since))

    def complete() -> dict[str, float] | None:
        lines = service.client.get("/metrics").text.splitlines()
        samples = dict(line.rsplit(" ", 1) for line in lines if line.startswith("callboard_"))
        samples_by_name = {name: float(value) for name, value in samples.items()}
        return (
            samples_by_name
            if 'callboard_oldest_waiting_run_seconds{queue="gpu"}' in samples_by_name
            else None
        )

    samples_by_name = until(complete)  # they may be a second old
    build = f'callboard_build_info{{python="{platform.python_version()}",version="{__version__}"}}'
    assert {name for name in samples_by_name if name.startswith("callboard_build_info")} == {build}
    assert samples_by_name['callboard_training_agent_steps_per_second{host="lab-1"}'] == 1_500.0
    assert samples_by_name['callboard_training_agent_steps_per_second{host="external"}'] == 40.0
    assert samples_by_name['callboard_host_recorder_lag_seconds{host="lab-1"}'] == 2.5
    assert samples_by_name['callboard_host_draining{host="lab-1"}'] == 0.0
    assert 3_600 <= samples_by_name['callboard_oldest_waiting_run_seconds{queue="gpu"}'] < 7_200


def test_host_whose_worker_was_stopped_is_not_reported_as_one_that_is_not_alive(
    tmp_path: Path, sqlite_template: Path
) -> None:
    shutil.copyfile(sqlite_template, tmp_path / "callboard.sqlite3")
    silent_since = datetime.now(UTC) - timedelta(hours=1)
    with opened(Settings(home=tmp_path).database) as engine:
        add_host(engine, "killed", last_seen_at=silent_since)
        add_host(engine, "stopped", last_seen_at=silent_since, stopped_at=silent_since)
        families = {family.name: family for family in ServiceCollector(engine, lease_s=15.0).collect()}
    samples = families["callboard_host_alive"].samples
    assert {sample.labels["host"]: sample.value for sample in samples} == {"killed": 0.0}
