"""What one token, one request and one page may take."""

import json
import sqlite3
from collections import namedtuple
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.routing import serialize_response

from backend.db import keyset
from backend.experiments.experiments import sweep as sweeps
from backend.external.schemas import MAX_SERIES_OF_REQUEST
from backend.platform.principals import Role
from backend.replays.play.sources import Beginning
from backend.runs.runs import grid
from backend.runs.runs.external_spec import MAX_CONFIG_BYTES, MAX_IMPORT_OPTIONS_BYTES
from backend.specs.run import parse_run_spec
from tests.support import external
from tests.support.artifacts import make_episode
from tests.support.rows import CARTPOLE, add_host, external_request, make_checkpoint, make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_game

pytestmark = pytest.mark.service

Usage = namedtuple("Usage", "total used free")


def _set(service: RunningService, monkeypatch: pytest.MonkeyPatch, **values: int) -> None:
    for name, value in values.items():
        monkeypatch.setitem(service.settings.__dict__, name, value)


def test_token_stores_no_more_than_its_quota(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(sqlite_service, monkeypatch, token_daily_runs=2, token_daily_series=3, token_daily_bytes=10_000)
    with (
        sqlite_service.client_as(Role.OPERATOR) as script,
        sqlite_service.client_as(Role.OPERATOR) as other,
    ):
        run = external.create(script)
        refused = script.post("/api/v1/runs", json=CARTPOLE | {"seeds": [1, 2]})
        assert (refused.status_code, "CALLBOARD_TOKEN_DAILY_RUNS" in refused.json()["detail"]) == (429, True)
        assert int(refused.headers["Retry-After"]) > 3600
        assert sqlite_service.client.get("/api/v1/runs").json()["total"] == 1
        for place in range(3):
            body = external.batch(place + 1, [1.0], first=place, metric=f"loss/{place}")
            external.send(script, run, "points", body)
        body = external.batch(4, [1.0], first=4, metric="loss/4")
        assert script.post(f"/api/v1/runs/{run['id']}/points", json=body).status_code == 429
        line = {"time": "2026-01-01T00:00:00Z", "message": "x" * 9_000}
        log = {"source": external.SOURCE, "sequence": 4, "lines": [line]}
        assert script.post(f"/api/v1/runs/{run['id']}/log", json=log).status_code == 200
        for _ in range(2):  # nothing is stored, and nothing counts
            assert script.post(f"/api/v1/runs/{run['id']}/log", json=log | {"sequence": 9}).status_code == 409
        rest = log | {"sequence": 5, "lines": [line | {"message": "x" * 100}]}
        assert script.post(f"/api/v1/runs/{run['id']}/log", json=rest).status_code == 200
        refused = script.post(f"/api/v1/runs/{run['id']}/log", json=log | {"sequence": 6})
        assert (refused.status_code, "DAILY_BYTES" in refused.json()["detail"]) == (429, True)
        assert script.get(f"/api/v1/runs/{run['id']}").status_code == 200
        external.create(other)


def test_tokens_share_the_quota_and_the_turn_to_write_of_the_token_that_created_them(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(sqlite_service, monkeypatch, token_daily_runs=2)
    payers: list[str] = []
    queue = sqlite_service.app_state.limits.writes
    turn = queue.turn

    def noted(payer_id: str) -> AbstractAsyncContextManager[float]:
        payers.append(payer_id)
        return turn(payer_id)

    monkeypatch.setattr(queue, "turn", noted)
    scopes = (None, None, "external_runs")
    with sqlite_service.client_as(Role.OPERATOR) as root, sqlite_service.client_as(Role.OPERATOR) as other:
        headers = [dict(root.headers)]
        for scope in scopes:  # a chain: each creates the next
            body = {"name": "child"} | ({"scope": scope} if scope else {})
            created = root.post("/api/v1/tokens", json=body, headers=headers[-1])
            assert created.status_code == 201, created.text
            headers.append(headers[-1] | {"authorization": f"Bearer {created.json()['token']}"})
        answers = [
            root.post("/api/v1/runs", json=external_request(seed=n), headers=of_token)
            for n, of_token in enumerate(reversed(headers))
        ]
        assert [answer.status_code for answer in answers] == [201, 201, 429, 429]
        assert len(set(payers)) == 1, "one turn to write for all of them"
        external.create(other)
        assert len(set(payers)) == 2


def test_nothing_that_scripts_send_is_stored_on_a_disk_that_is_nearly_full(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is on the same disk."""
    run = external.create(sqlite_service.client)
    kept = make_run(sqlite_service.engine)
    nearly_full = Usage(10**9, 10**9 - 1000, 1000)
    monkeypatch.setattr("backend.http.dependencies.shutil.disk_usage", lambda folder: nearly_full)
    line = {"time": "2026-01-01T00:00:00Z", "message": "x"}
    for path, body in (
        ("points", external.batch(1, [1.0])),
        ("episodes", external.episodes(1, [1.0])),
        ("log", {"source": external.SOURCE, "sequence": 1, "lines": [line]}),
    ):
        answer = sqlite_service.client.post(f"/api/v1/runs/{run['id']}/{path}", json=body)
        assert (answer.status_code, "nearly full" in answer.json()["detail"]) == (503, True)
    assert sqlite_service.client.post("/api/v1/runs", json=external_request()).status_code == 503
    assert sqlite_service.client.patch(f"/api/v1/runs/{kept.id}", json={"name": "x"}).status_code == 200
    assert sqlite_service.client.delete(f"/api/v1/runs/{kept.id}").status_code == 204


def test_script_ends_and_a_run_that_is_to_stop_is_deleted_on_a_disk_that_is_nearly_full(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = sqlite_service.client
    first, second = external.create(client), external.create(client)
    nearly_full = Usage(10**9, 10**9 - 2**25, 2**25)
    monkeypatch.setattr("backend.http.dependencies.shutil.disk_usage", lambda folder: nearly_full)
    path = f"/api/v1/runs/{first['id']}"
    assert client.post(f"{path}/heartbeat", json={"state": "finished"}).json()["state"] == "finished"
    path = f"/api/v1/runs/{second['id']}"
    assert client.delete(path).status_code == 409
    assert client.post(f"{path}/stop").status_code == 200
    assert client.delete(path).status_code == 204


def test_points_of_many_metrics_are_sent_in_parts(sqlite_service: RunningService) -> None:
    run = external.create(sqlite_service.client)
    series = [
        {"metric": f"m/{i}", "agent_steps": [1], "wall_time_s": [1.0], "value": [1.0]}
        for i in range(MAX_SERIES_OF_REQUEST + 1)
    ]
    body = {"source": external.SOURCE, "sequence": 1, "series": series}
    refused = sqlite_service.client.post(f"/api/v1/runs/{run['id']}/points", json=body)
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    external.send(sqlite_service.client, run, "points", body | {"series": series[1:]})


def _unlocked(database: str | None, plain: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    """The function, which fails while the database is locked, and notes its calls."""

    def called(*given: Any, **named: Any) -> Any:
        calls.append(plain.__name__)
        other = sqlite3.connect(database or "", timeout=0.0, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
        other.close()
        return plain(*given, **named)

    return called


@pytest.mark.parametrize(
    ("path", "module", "plain"),
    [("/api/v1/runs", grid, parse_run_spec), ("/api/v1/sweeps", sweeps, sweeps.of)],
    ids=["runs", "sweeps"],
)
def test_requests_are_validated_before_the_database_is_locked(
    sqlite_service: RunningService,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    module: ModuleType,
    plain: Callable[..., Any],
) -> None:
    calls: list[str] = []
    validate = _unlocked(sqlite_service.engine.url.database, plain, calls)
    monkeypatch.setattr(module, plain.__name__, validate)
    space = {"config.learning_rate": {"values": [0.001, 0.002]}}
    body = (
        CARTPOLE | {"seeds": [1, 2]}
        if path.endswith("runs")
        else {"name": "s", "run": CARTPOLE, "space": space}
    )
    answer = sqlite_service.client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    assert calls


def test_changes_are_committed_before_their_answer_is_serialised(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is done in the event loop, where others wait for the write lock."""
    run = make_run(sqlite_service.engine)
    calls: list[str] = []
    serialise = _unlocked(sqlite_service.engine.url.database, serialize_response, calls)
    monkeypatch.setattr("fastapi.routing.serialize_response", serialise)
    path = f"/api/v1/runs/{run.id}"
    assert sqlite_service.client.patch(path, json={"name": "changed"}).status_code == 200
    assert calls
    monkeypatch.undo()
    assert sqlite_service.client.get(path).json()["name"] == "changed"
    trail = sqlite_service.client.get("/api/v1/audit").json()["items"]
    assert any(run.id in json.dumps(item) for item in trail)


@pytest.mark.parametrize("path", ["/api/v1/play", "/api/v1/branches", "/api/v1/start-sets"])
def test_replays_are_read_before_the_database_is_locked(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    engine, store = sqlite_service.engine, sqlite_service.artifacts
    add_host(engine, "a")
    run = make_run(engine, environment="ALE/Breakout-v5")
    make_checkpoint(engine, run)
    game = add_game(engine, store, run, tmp_path).id
    traced = make_episode(engine, run, store, tmp_path).id
    calls: list[str] = []
    for name in ("read", "check", "open"):
        monkeypatch.setattr(store, name, _unlocked(engine.url.database, getattr(store, name), calls))
    body = {
        "/api/v1/play": {"from": {"episode": game, "decision": 20}},
        "/api/v1/branches": {"episode": traced, "decision": 1},
        "/api/v1/start-sets": {"name": "wall", "episodes": [game], "points": 1},
    }[path]
    answer = sqlite_service.client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    assert calls


def test_moment_of_a_session_is_packed_before_the_database_is_locked(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = sqlite_service.engine
    add_host(engine, "a")
    run = make_run(engine, environment="ALE/Breakout-v5")
    episode = add_game(engine, sqlite_service.artifacts, run, tmp_path)
    calls: list[str] = []
    monkeypatch.setattr(Beginning, "stored", _unlocked(engine.url.database, Beginning.stored, calls))
    start = {"from": {"episode": episode.id, "decision": 20}}
    answer = sqlite_service.client.post("/api/v1/play", json=start)
    assert answer.status_code == 201, answer.text
    assert calls == ["stored"]


def test_config_of_an_external_run_is_bounded_as_a_whole(sqlite_service: RunningService) -> None:
    config = {f"s{i:03}": "x" * 900 for i in range(MAX_CONFIG_BYTES // 900 + 1)}
    answer = sqlite_service.client.post("/api/v1/runs", json=external_request(config=config))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "config")
    assert "keep longer settings as a file of the run" in error["message"]
    del config["s000"]
    external.create(sqlite_service.client, config=config)


def test_import_options_of_an_external_run_are_bounded(sqlite_service: RunningService) -> None:
    options = {"metric": ["x" * 900] * (MAX_IMPORT_OPTIONS_BYTES // 900 + 1)}
    answer = sqlite_service.client.post("/api/v1/runs", json=external_request(import_options=options))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "import_options")
    assert "name fewer metrics to import" in error["message"]
    options["metric"].pop()
    external.create(sqlite_service.client, import_options=options)


def test_run_with_larger_import_options_than_now_allowed_is_described_further(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = external.create(sqlite_service.client, import_options={"metric": ["x" * 900]})
    monkeypatch.setattr("backend.runs.runs.external_spec.MAX_IMPORT_OPTIONS_BYTES", 100)
    body = {"source": external.SOURCE, "sequence": 1, "config": {"lr": 0.5}}
    answer = sqlite_service.client.post(f"/api/v1/runs/{run['id']}/config", json=body)
    assert answer.status_code == 200, answer.text


def test_page_of_runs_has_a_bounded_size(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyset, "MAX_PAGE_BYTES", 100_000)
    created = [external.create(service.client, notes="\u00e9" * 10_000, seed=k)["id"] for k in range(9)]
    for sort in ("-created_at", "config.lr"):
        items: list[dict[str, Any]] = []
        cursor, n_pages = None, 0
        while n_pages == 0 or cursor:
            parameters = {"sort": sort, "limit": 1000} | ({"cursor": cursor} if cursor else {})
            page = service.client.get("/api/v1/runs", params=parameters).json()
            items += page["items"]
            cursor, n_pages = page["next_cursor"], n_pages + 1
        assert (sorted(run["id"] for run in items), n_pages > 1) == (sorted(created), True)
        assert all(run["spec"] == {} for run in items)
    asked = service.client.get("/api/v1/runs", params={"spec": True, "limit": 1}).json()
    assert asked["items"][0]["spec"]["config"]["lr"] == 0.001
