import os
import signal
from pathlib import Path

import httpx
import pytest

from backend.db.migrate import downgrade
from backend.settings import Settings
from backend.specs.states import RunState
from tests.support.databases import PostgresServer
from tests.support.redis_server import RedisServer
from tests.support.runs import make_run
from tests.support.service import RunningServer, RunningService, running_service

pytestmark = pytest.mark.service


def test_healthy_and_ready_without_logging_in(service: RunningService) -> None:
    with service.new_client() as anyone:
        assert anyone.get("/healthz").json() == {"status": "ok"}
        ready = anyone.get("/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (200, True)


def test_not_ready_on_an_old_schema(own_database_url: str, redis_url: str, tmp_path: Path) -> None:
    with running_service(own_database_url, redis_url, tmp_path) as service:
        downgrade(own_database_url, "base")
        answer = service.client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "database": True, "migrated": False, "redis": True}


def test_not_ready_while_redis_hangs(sqlite_service: RunningService, redis_server: RedisServer) -> None:
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        answer = sqlite_service.client.get("/readyz")
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)
    assert answer.status_code == 503
    assert answer.json()["redis"] is False
    assert sqlite_service.client.get("/readyz").json()["ready"] is True


def test_a_database_that_restarts_is_found_again(
    postgres: PostgresServer, redis_url: str, tmp_path: Path
) -> None:
    with postgres.database() as url, running_service(url, redis_url, tmp_path) as service:
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name <> 'admin' "
            f"AND datname = '{service.engine.url.database}'"
        )
        assert service.client.get("/api/v1/runs").status_code == 200


def test_a_database_away_is_503(tmp_path: Path, redis_url: str) -> None:
    settings = Settings(
        home=tmp_path, port=0, redis_url=redis_url, database_url="postgresql+psycopg://x@127.0.0.1:1/x"
    )
    with RunningServer(settings) as url:
        ready = httpx.get(f"{url}/readyz")
        assert (ready.status_code, ready.json()["database"]) == (503, False)
        answer = httpx.get(f"{url}/api/v1/runs", headers={"Cookie": "callboard_session=x"})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_metrics_count_requests_by_route_and_runs_by_state(service: RunningService) -> None:
    def answered(text: str) -> float:
        sample = 'callboard_http_requests_total{method="GET",route="/runs/{run_id}",status="200"} '
        lines = [line for line in text.splitlines() if line.startswith(sample)]
        return float(lines[0].removeprefix(sample)) if lines else 0.0

    run = make_run(service.engine, RunState.RUNNING)
    before = answered(service.client.get("/metrics").text)
    service.client.get(f"/api/v1/runs/{run.id}")
    text = service.client.get("/metrics").text
    assert 'callboard_runs{state="running"} 1.0' in text
    assert 'callboard_runs{state="lost"} 0.0' in text
    assert answered(text) == before + 1
    assert run.id not in text
