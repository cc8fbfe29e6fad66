import base64
import json
from typing import Any

import pytest
import redis
from sqlalchemy import select

from backend.db import LogLine, Run
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.runs.runs import repository
from backend.runs.runs import service as run_service
from backend.specs.states import ENDED, RunState
from tests.support.rows import CARTPOLE, PROVENANCE, add_attempt, external_request, make_run
from tests.support.service import RunningService, created_run
from tests.support.waiting import Patience, until

pytestmark = pytest.mark.service

RUNS = "/api/v1/runs"


def _stored(service: RunningService) -> int:
    with reading(service.engine) as session:
        return len(session.scalars(select(Run.id)).all())


def test_integral_floats_are_accepted_as_integers(service: RunningService) -> None:
    body = CARTPOLE | {"seed": 3.0, "config": {"n_e": 8.0}, "priority": -1.0}
    run = created_run(service.client.post("/api/v1/runs", json=body))
    assert (run["seed"], run["spec"]["config"]["n_e"], run["priority"]) == (3, 8, -1)
    changed = service.client.patch(f"/api/v1/runs/{run['id']}", json={"priority": 7.0})
    assert changed.json()["priority"] == 7
    # Beyond the column's type.
    listed = service.client.get("/api/v1/runs", params={"filter": "priority<9999999999999999"})
    assert listed.json()["total"] == 1


def test_create_returns_items_for_a_seed_and_for_seeds(service: RunningService) -> None:
    run = created_run(service.client.post("/api/v1/runs", json=CARTPOLE | {"name": "first", "seed": 3}))
    assert (run["state"], run["seed"], run["name"], run["progress"]) == ("queued", 3, "first", 0)
    # Generated clients send the default of what is left out.
    several = service.client.post("/api/v1/runs", json=CARTPOLE | {"seed": None, "seeds": [4, 5.0, 6]})
    assert several.status_code == 201
    assert [r["seed"] for r in several.json()["items"]] == [4, 5, 6]
    assert [r["spec"]["seed"] for r in several.json()["items"]] == [4, 5, 6]
    listed = service.client.get("/api/v1/runs", params={"sort": "seed"}).json()
    assert [r["seed"] for r in listed["items"]] == [3, 4, 5, 6]
    assert listed["total"] == 4


def test_named_runs_of_several_seeds_have_seed_in_name(service: RunningService) -> None:
    several = service.client.post("/api/v1/runs", json=CARTPOLE | {"name": "wide", "seeds": [4, 5]})
    assert [r["name"] for r in several.json()["items"]] == ["wide seed 4", "wide seed 5"]
    alone = service.client.post("/api/v1/runs", json=CARTPOLE | {"name": "wide", "seeds": [4]})
    assert [r["name"] for r in alone.json()["items"]] == ["wide"]
    long = service.client.post("/api/v1/runs", json=CARTPOLE | {"name": "w" * 200, "seeds": [4, 2**31 - 1]})
    assert [r["name"] for r in long.json()["items"]] == [
        "w" * 193 + " seed 4",
        "w" * 184 + " seed 2147483647",
    ]


RATES = {"config.learning_rate": [0.001, 0.003]}


def test_grid_creates_a_run_for_each_combination_and_seed(service: RunningService) -> None:
    body = CARTPOLE | {"seeds": [4, 5], "grid": RATES | {"config.t_max": [5]}, "group": "rates"}
    items = service.client.post("/api/v1/runs", json=body).json()["items"]
    assert [
        (run["spec"]["config"]["learning_rate"], run["spec"]["config"]["t_max"], run["seed"], run["group"])
        for run in items
    ] == [(rate, 5, seed, "rates") for rate in (0.001, 0.003) for seed in (4, 5)]
    # The value that is the default is named too.
    assert [run["name"] for run in items][1:3] == [
        "paac CartPole-v1 learning_rate=0.001 t_max=5 seed 5",
        "paac CartPole-v1 learning_rate=0.003 t_max=5 seed 4",
    ]
    named = service.client.post("/api/v1/runs", json=CARTPOLE | {"name": "wide", "grid": RATES})
    assert [run["name"] for run in named.json()["items"]] == [
        "wide learning_rate=0.001",
        "wide learning_rate=0.003",
    ]


def test_grid_with_the_same_idempotency_key_creates_its_runs_once(service: RunningService) -> None:
    body, headers = CARTPOLE | {"grid": RATES}, {"Idempotency-Key": "one-click"}
    first = service.client.post("/api/v1/runs", json=body, headers=headers)
    again = service.client.post("/api/v1/runs", json=body, headers=headers)
    assert again.json() == first.json()
    assert _stored(service) == 2


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"grid": {}}, ["grid"]),
        ({"grid": {"notes": ["a", "b"]}}, ["grid.notes"]),
        ({"grid": {"config.t_max": 5}}, ["grid.config.t_max"]),
        ({"grid": {"config.t_max": [5, 5]}}, ["grid.config.t_max"]),
        ({"grid": {"config.t_max": [5, [6]]}}, ["grid.config.t_max"]),
        ({"grid": {"config.t_max": [5, 0, 10**9]}}, ["config.t_max", "config.t_max"]),
        ({"grid": {"config.no_such": [1, 2]}}, ["config.no_such"]),
        ({"grid": {"config.n_e": [4, 8]}, "config": {"n_e": 8}}, ["grid.config.n_e"]),
        ({"grid": {"config.t_max": list(range(1, 51))}, "seeds": [1, 2, 3]}, ["grid"]),
        ({"grid": {f"config.a{n}": [1, 2] for n in range(20)}}, ["grid"]),
    ],
)
def test_invalid_grid_names_its_fields_and_stores_nothing(
    service: RunningService, change: dict[str, Any], fields: list[str]
) -> None:
    answer = service.client.post("/api/v1/runs", json=CARTPOLE | change)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == fields
    assert _stored(service) == 0


def test_create_wakes_the_queue(service: RunningService, redis_url: str) -> None:
    service.client.post("/api/v1/runs", json=CARTPOLE | {"queue": "gpu"})
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("gpu") == 1


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"colour": "red"}, ["colour"]),
    ({"environment": "NoSuchGame-v0"}, ["environment"]),
    ({"environment": "os:system"}, ["environment"]),
    ({"algorithm": "none"}, ["algorithm"]),
    ({"algorithm": None}, ["algorithm"]),
    ({"algorithm": ["paac"]}, ["algorithm"]),
    ({"config": {"n_e": 10**9}}, ["config.n_e"]),
    ({"config": {"n_e": 10**40}}, ["config.n_e"]),
    ({"config": {"n_e": 1.5}}, ["config.n_e"]),
    ({"config": {"n_e": "32"}}, ["config.n_e"]),
    ({"config": {"gamma": float("nan")}}, ["config.gamma"]),
    ({"config": {"gamma": float("inf"), "colour": 1}}, ["config.colour", "config.gamma"]),
    ({"config": []}, ["config"]),
    ({"environment_config": {"frame_skip": 4}}, ["environment_config.frame_skip"]),
    ({"stop": {}}, ["stop"]),
    ({"stop": {"score": float("-inf")}}, ["stop.score"]),
    ({"seed": -1}, ["seed"]),
    ({"seed": 2**63}, ["seed"]),
    ({"seed": True}, ["seed"]),
    ({"seeds": []}, ["seeds"]),
    ({"seeds": [1, 1]}, ["seeds"]),
    ({"seeds": [1, "2", -3]}, ["seeds.1", "seeds.2"]),
    ({"seeds": [1], "seed": 1}, ["seed"]),
    ({"seeds": list(range(10_000))}, ["seeds"]),
    ({"name": "a\0b"}, ["name"]),
    ({"notes": "\ud800"}, ["notes"]),
    ({"a\0": 1}, ["a\0"]),
    ({"tags": ["fine", "a\nb"]}, ["tags.1"]),
    ({"priority": 10**30}, ["priority"]),
    ({"device": "tpu", "queue": "x", "config": {"t_max": 0}}, ["config.t_max", "device", "queue"]),
]


def test_invalid_run_request_names_every_field_and_stores_nothing(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    for wrong, fields in WRONG:
        with subtests.test(wrong=ascii(wrong)[:80]):
            answer = sqlite_service.post_json("/api/v1/runs", CARTPOLE | wrong)
            assert answer.status_code == 422
            assert answer.headers["content-type"] == "application/problem+json"
            problem = answer.json()
            assert sorted(e["field"] for e in problem["errors"]) == fields
            assert all(e["message"] for e in problem["errors"])
            assert problem["status"] == 422
            assert _stored(sqlite_service) == 0


UNREADABLE: list[tuple[bytes, int]] = [
    (b"{", 422),
    (b"", 422),
    (b"[]", 422),
    (b'"text"', 422),
    (b"\xff\xfe", 422),
    (b'{"seed": ' + b"9" * 10_000 + b"}", 422),
    (b"[" * 100_000 + b"]" * 100_000, 422),
    (b'{"a":' * 300 + b"1" + b"}" * 300, 422),
    (b'{"config": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}", 422),
    (b'{"\\ud800": 1}', 422),
    (b'{"tags": ' + b"[" * 900 + b"]" * 900 + b"}", 422),
    (b'{"notes": "' + b"x" * 3_000_000 + b'"}', 413),
]


def test_malformed_body_returns_client_error_and_stores_nothing(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    for body, status in UNREADABLE:
        with subtests.test(body=body[:30]):
            answer = sqlite_service.client.post(
                "/api/v1/runs", content=body, headers={"Content-Type": "application/json"}
            )
            assert (answer.status_code, answer.json()["status"]) == (status, status)
            assert _stored(sqlite_service) == 0


def test_unknown_run_id_returns_404(sqlite_service: RunningService, subtests: pytest.Subtests) -> None:
    for run_id in ("x", "0" * 26, "%00", "%F0%9F%92%A5", "0" * 5000):
        for tail in ("", "/log", "/episodes", "/checkpoints", "/evaluations", "/series"):
            with subtests.test(run_id=run_id[:30], tail=tail):
                answer = sqlite_service.client.get(f"/api/v1/runs/{run_id}{tail}")
                assert answer.status_code == 404
                assert answer.json()["title"] == "Not Found"


def test_run_detail_contains_transitions_and_attempts(service: RunningService) -> None:
    run = make_run(service.engine, RunState.STOPPED)
    add_attempt(service.engine, run.id)
    add_attempt(service.engine, run.id, 2, provenance=PROVENANCE.model_dump() | {"device": "cpu"})
    detail = service.client.get(f"/api/v1/runs/{run.id}").json()
    assert [t["after"] for t in detail["transitions"]] == [
        "queued", "starting", "running", "stopping", "stopped"
    ]  # fmt: skip
    assert [a["number"] for a in detail["attempts"]] == [1, 2]
    assert [a["provenance"] for a in detail["attempts"]] == [
        None, PROVENANCE.model_dump() | {"device": "cpu"}
    ]  # fmt: skip
    assert detail["revision"] == 5


def test_non_finite_scores_are_null_in_json(service: RunningService) -> None:
    run = make_run(service.engine)
    with writing(service.engine) as session:
        locked = repository.get(session, run.id, for_update=True)
        assert locked is not None
        locked.best_return, locked.agent_steps_per_s = float("inf"), 10.5
        if service.engine.dialect.name == "postgresql":  # SQLite keeps NaN as NULL itself
            locked.score = float("nan")
    listed = service.client.get("/api/v1/runs").json()["items"][0]
    assert (listed["score"], listed["best_return"], listed["agent_steps_per_s"]) == (None, None, 10.5)


def test_progress_and_time_left_follow_the_nearest_bound(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[int, float, dict[str, Any], float | None, float | None]] = [
        (2_500, 10, {"agent_steps": 10_000}, 0.25, 75),
        (2_500, 30, {"agent_steps": 10_000, "wall_time_s": 60}, 0.5, 30),
        (20_000, 10, {"agent_steps": 10_000}, 1, 0),
        (2_500, 10, {"score": 200}, None, None),
    ]
    for steps, wall_s, stop, progress, left_s in cases:
        run = make_run(sqlite_service.engine, RunState.RUNNING, stop=stop)
        with writing(sqlite_service.engine) as session:
            locked = repository.get(session, run.id, for_update=True)
            assert locked is not None
            locked.agent_steps, locked.wall_time_s, locked.agent_steps_per_s = steps, wall_s, 100.0
        with subtests.test(stop=stop, steps=steps):
            shown = sqlite_service.client.get(f"/api/v1/runs/{run.id}").json()
            assert (shown["progress"], shown["time_left_s"]) == (progress, left_s)


def test_patch_changes_metadata_and_rejects_other_fields(service: RunningService) -> None:
    run = make_run(service.engine, tags=["old"], group="g")
    url = f"/api/v1/runs/{run.id}"
    changed = service.client.patch(
        url, json={"name": "new", "tags": ["a", "b"], "notes": "n", "group": None, "priority": 5}
    ).json()
    expected = {"name": "new", "tags": ["a", "b"], "notes": "n", "group": None, "priority": 5}
    assert {k: changed[k] for k in expected} == expected
    assert {k: changed["spec"][k] for k in expected} == expected
    assert changed["revision"] == run.revision + 1
    assert service.client.patch(url, json={}).json() == changed
    for wrong in ({"state": "finished"}, {"name": ""}, {"name": "a\0"}, {"priority": 101}, {"tags": [""]}):
        assert service.client.patch(url, json=wrong).status_code == 422
    assert service.client.get(url).json()["name"] == "new"


@pytest.mark.parametrize("action", ["stop", "kill"])
def test_stop_and_kill_in_every_state(service: RunningService, action: str) -> None:
    for state in RunState:
        run = make_run(service.engine, state)
        answer = service.client.post(f"/api/v1/runs/{run.id}/{action}")
        if state in ENDED:
            assert answer.status_code == 409
            assert state.value in answer.json()["detail"]
        elif state in (RunState.QUEUED, RunState.LOST):
            assert (answer.status_code, answer.json()["state"]) == (200, "stopped")
        else:
            body = answer.json()
            assert (answer.status_code, body["state"], body["stop_requested"]) == (200, "stopping", action)


def test_checkpoint_is_requested_of_a_running_run_alone(service: RunningService) -> None:
    for state in RunState:
        run = make_run(service.engine, state)
        answer = service.client.post(f"/api/v1/runs/{run.id}/checkpoint")
        if state == RunState.RUNNING:
            assert answer.json()["checkpoint_requested_at"] is not None
        else:
            assert (answer.status_code, state.value in answer.json()["detail"]) == (409, True)
    theirs = created_run(service.client.post("/api/v1/runs", json=external_request()))
    refused = service.client.post(f"/api/v1/runs/{theirs['id']}/checkpoint")
    assert (refused.status_code, "its script saves" in refused.json()["detail"]) == (409, True)


def test_stop_is_idempotent_and_does_not_replace_kill(service: RunningService) -> None:
    run = make_run(service.engine, RunState.RUNNING)
    first = service.client.post(f"/api/v1/runs/{run.id}/stop").json()
    assert service.client.post(f"/api/v1/runs/{run.id}/stop").json() == first
    killed = service.client.post(f"/api/v1/runs/{run.id}/kill").json()
    assert (killed["stop_requested"], killed["revision"]) == ("kill", first["revision"] + 1)
    assert service.client.post(f"/api/v1/runs/{run.id}/stop").json() == killed


def test_resume_in_every_state(service: RunningService) -> None:
    for state in RunState:
        run = make_run(service.engine, state)
        answer = service.client.post(f"/api/v1/runs/{run.id}/resume")
        if state in ENDED:
            assert (answer.status_code, answer.json()["state"]) == (200, "queued")
        else:
            assert answer.status_code == 409
            assert state.value in answer.json()["detail"]


def test_resume_at_reached_bound_needs_larger_bound(service: RunningService) -> None:
    run = make_run(service.engine, RunState.FINISHED)
    with writing(service.engine) as session:
        locked = repository.get(session, run.id, for_update=True)
        assert locked is not None
        locked.agent_steps = 10_000
    url = f"/api/v1/runs/{run.id}/resume"
    refused = service.client.post(url)
    assert refused.status_code == 409
    message = "it has reached its limit of 10,000 agent steps (10,000 completed): set a higher limit"
    assert refused.json()["errors"] == [{"field": "stop.agent_steps", "message": message}]
    assert service.client.post(url, json={"stop": {"agent_steps": 9_000}}).status_code == 409
    assert service.client.post(url, json={"stop": {"agent_steps": 10**13}}).status_code == 422
    assert service.client.get(f"/api/v1/runs/{run.id}").json()["spec"]["stop"]["agent_steps"] == 10_000
    resumed = service.client.post(url, json={"stop": {"agent_steps": 20_000}}).json()
    assert (resumed["state"], resumed["spec"]["stop"]["agent_steps"]) == ("queued", 20_000)
    assert resumed["progress"] == 0.5


@pytest.mark.parametrize("state", [RunState.STOPPED, RunState.FAILED])
def test_run_that_ended_at_its_limit_unfinished_resumes_without_a_larger_one(
    service: RunningService, state: RunState
) -> None:
    run = make_run(service.engine, state, config={"learning_rate_schedule": "linear"})
    with writing(service.engine) as session:
        locked = repository.get(session, run.id, for_update=True)
        assert locked is not None
        locked.agent_steps, locked.wall_time_s = 10_000, 50.0
        locked.spec = locked.spec | {"annealing_agent_steps": 5_000}
    url = f"/api/v1/runs/{run.id}/resume"
    assert service.client.post(url, json={"stop": {"agent_steps": 9_000}}).status_code == 409
    beside_a_reached_one = {"agent_steps": 10_000, "wall_time_s": 500}
    refused = service.client.post(url, json={"stop": beside_a_reached_one})
    assert refused.status_code == 409
    assert refused.json()["detail"].endswith("; without changes it completes what is missing")
    assert service.client.post(url, json={"annealing": "extend"}).status_code == 409
    unchanged = service.client.get(f"/api/v1/runs/{run.id}").json()["spec"]["stop"]
    for body in (None, {"stop": unchanged}):
        resumed = service.client.post(url, json=body)
        assert resumed.status_code == 200, resumed.text
        assert (resumed.json()["state"], resumed.json()["spec"]["stop"]) == ("queued", unchanged)
        assert service.client.post(f"/api/v1/runs/{run.id}/stop").json()["state"] == "stopped"


def test_resume_at_a_reached_time_names_parts_of_a_second(service: RunningService) -> None:
    run = make_run(service.engine, RunState.FINISHED, stop={"wall_time_s": 0.5})
    with writing(service.engine) as session:
        locked = repository.get(session, run.id, for_update=True)
        assert locked is not None
        locked.wall_time_s = 1_234.5678
    refused = service.client.post(f"/api/v1/runs/{run.id}/resume")
    message = "it has reached its limit of 0.5 s of training (1,234.6 s completed): set a higher limit"
    assert refused.json()["errors"] == [{"field": "stop.wall_time_s", "message": message}]


def test_resume_chooses_the_schedule_of_an_annealed_learning_rate(service: RunningService) -> None:
    config = {"learning_rate_schedule": "linear"}
    run = make_run(service.engine, RunState.STOPPED, config=config)
    with writing(service.engine) as session:
        locked = repository.get(session, run.id, for_update=True)
        assert locked is not None
        locked.agent_steps = 7_500
    url = f"/api/v1/runs/{run.id}"

    def resumed(**body: Any) -> tuple[int | None, int]:
        answer = service.client.post(f"{url}/resume", json=body)
        assert answer.status_code == 200, answer.text
        assert service.client.post(f"{url}/stop").json()["state"] == "stopped"
        log = service.client.get(f"{url}/log", params={"tail": True, "search": "learning rate now"}).json()
        return answer.json()["spec"]["annealing_agent_steps"], len(log["items"])

    assert resumed(stop={"agent_steps": 30_000}, annealing="keep") == (10_000, 0)
    assert resumed(stop={"agent_steps": 20_000}) == (10_000, 0)
    assert resumed(annealing="extend") == (None, 1)
    departures = service.client.get(url).json()["departures"]
    assert departures == {"annealing_agent_steps": "10000 → 20000 at 7.5k"}
    log = service.client.get(f"{url}/log", params={"search": "learning rate now"}).json()["items"]
    assert (log[0]["level"], log[0]["message"]) == (
        "warning",
        "the learning rate now falls to 0 over 20,000 agent steps instead of 10,000: at 7,500 it changes "
        "from 25% to 62% of its initial value",
    )
    assert resumed(stop={"agent_steps": 40_000}) == (None, 2)
    without_steps = {"stop": {"wall_time_s": 7_200}}
    assert resumed(stop={"agent_steps": 40_000}, annealing="keep") == (40_000, 2)
    assert resumed(**without_steps) == (40_000, 2)
    refused = service.client.post(f"{url}/resume", json=without_steps | {"annealing": "extend"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "stop.agent_steps")
    assert resumed(**without_steps) == (40_000, 2)
    constant = make_run(service.engine, RunState.STOPPED, config={"learning_rate_schedule": "constant"})
    refused = service.client.post(f"/api/v1/runs/{constant.id}/resume", json={"annealing": "keep"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "annealing")


def test_resume_with_other_limits_needs_the_memory_of_a_new_run(service: RunningService) -> None:
    config = {"algorithm": "dqn", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 100_000}}
    [run] = service.client.post(RUNS, json=config).json()["items"]
    service.client.post(f"{RUNS}/{run['id']}/stop")
    stop = {"stop": {"agent_steps": 10_000_000}}
    service.client.post(f"{RUNS}/{run['id']}/resume", json=stop).raise_for_status()
    [other] = service.client.post(RUNS, json=config | stop).json()["items"]
    with reading(service.engine) as session:
        estimates = [
            session.get_one(Run, run_id).memory_estimate_bytes for run_id in (run["id"], other["id"])
        ]
    assert estimates[0] == estimates[1]


def test_score_limit_counts_once_the_score_is_of_enough_episodes(service: RunningService) -> None:
    run = make_run(service.engine, RunState.FINISHED, stop={"agent_steps": 1_000, "score": 10.0})
    further = {"stop": {"agent_steps": 5_000, "score": 10.0}}
    for n_episodes, status in ((100, 409), (40, 200)):
        with writing(service.engine) as session:
            locked = repository.get(session, run.id, for_update=True)
            assert locked is not None
            locked.agent_steps, locked.score, locked.episodes = 1_000, 22.0, n_episodes
        answer = service.client.post(f"{RUNS}/{run.id}/resume", json=further)
        assert answer.status_code == status, answer.text


def test_empty_host_or_group_is_none(service: RunningService) -> None:
    [run] = service.client.post(RUNS, json=CARTPOLE | {"host": "", "group": ""}).json()["items"]
    assert (run["spec"]["host"], run["group"]) == (None, None)


def test_delete_in_every_state(service: RunningService) -> None:
    for state in RunState:
        run = make_run(service.engine, state)
        answer = service.client.delete(f"/api/v1/runs/{run.id}")
        held = state in (RunState.STARTING, RunState.RUNNING, RunState.STOPPING)
        assert answer.status_code == (409 if held else 204)
        again = service.client.get(f"/api/v1/runs/{run.id}")
        assert again.status_code == (200 if held else 404)


def test_delete_removes_files(service: RunningService, tmp_path: Any) -> None:
    run = make_run(service.engine, RunState.STOPPED)
    file = tmp_path / "a.pt"
    file.write_bytes(b"x")
    service.artifacts.put(file, run.id, "checkpoints")

    def gone() -> bool:
        try:
            service.artifacts.size_bytes(run.id, "checkpoints", "a.pt")
        except FileNotFoundError:
            return True
        return False

    assert not gone()
    service.client.delete(f"/api/v1/runs/{run.id}")
    until(gone)  # files are deleted after the response is sent


def test_archive_hides_ended_run_from_list(service: RunningService) -> None:
    run = make_run(service.engine, RunState.FINISHED)
    other = make_run(service.engine, RunState.RUNNING)
    assert service.client.post(f"/api/v1/runs/{run.id}/archive").json()["archived"] is True
    assert service.client.post(f"/api/v1/runs/{other.id}/archive").status_code == 409

    def ids(**params: str) -> list[str]:
        return [r["id"] for r in service.client.get("/api/v1/runs", params=params).json()["items"]]

    assert ids() == [other.id]
    assert ids(archived="true") == [run.id]
    assert ids(archived="all", sort="created_at") == [run.id, other.id]
    back = service.client.post(f"/api/v1/runs/{run.id}/archive", json={"archived": False})
    assert back.json()["archived"] is False


def test_list_by_ids_returns_known_runs(service: RunningService) -> None:
    runs = [make_run(service.engine, seed=seed).id for seed in range(4)]
    params = {"id": [runs[2], runs[0], "01ARZ3NDEKTSV4RRFFQ69G5FAV"]}
    listed = service.client.get("/api/v1/runs", params=params).json()["items"]
    assert {run["id"] for run in listed} == {runs[0], runs[2]}
    assert (
        service.client.get("/api/v1/runs", params={"id": "none"})
        .json()["errors"][0]["field"]
        .startswith("id")
    )


def test_pages_contain_every_run_once_in_every_order(service: RunningService) -> None:
    runs = [make_run(service.engine, seed=seed) for seed in range(7)]
    with writing(service.engine) as session:
        for run, score in zip(runs, (3.0, None, 1.0, 3.0, None, -2.0, 3.0), strict=True):
            locked = repository.get(session, run.id, for_update=True)
            assert locked is not None
            locked.score = score
    for sort in [f"{sign}{name}" for name in repository.SORTS for sign in ("", "-")]:
        seen: list[dict[str, Any]] = []
        params: dict[str, Any] = {"sort": sort, "limit": 2}
        patience = Patience()
        while patience.lasts():
            page = service.client.get("/api/v1/runs", params=params).json()
            seen += page["items"]
            if page["next_cursor"] is None:
                break
            params["cursor"] = page["next_cursor"]
        assert sorted(r["id"] for r in seen) == sorted(r.id for r in runs), sort
        if sort == "-score":
            assert [r["score"] for r in seen] == [3, 3, 3, 1, -2, None, None]
        if sort == "score":
            assert [r["score"] for r in seen] == [-2, 1, 3, 3, 3, None, None]


def test_invalid_cursor_is_refused(service: RunningService, subtests: pytest.Subtests) -> None:
    def cursor(*key: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()

    run = make_run(service.engine)
    for sort, good in (
        ("score", 1.5),
        ("-name", "n"),
        ("agent_steps", 3),
        ("created_at", "2026-01-01T00:00:00Z"),
    ):
        url = f"/api/v1/runs?sort={sort}&cursor="
        order = (sort.removeprefix("-"), sort.startswith("-"))
        assert service.client.get(url + cursor(good, run.id, *order)).status_code == 200
        values = [[], "\0", {}, True, 10**400]
        if sort != "-name":
            values.append("0001-01-01T00:00:00+23:59")
        keys: list[tuple[Any, ...]] = [
            (),
            (good,),
            (good, 1),
            (good, "\0"),
            ("2026-01-01T00:00:00", "x" + "\ud800"),
        ]
        keys += [(value, run.id) for value in values]
        wrong = ["x", "é", "W" * 1500, cursor(), cursor(good), cursor(good, run.id)]
        wrong += [cursor(*key, *order) for key in keys]
        wrong += [cursor(good, run.id, order[0], not order[1]), cursor(good, run.id, "seed", order[1])]
        for text in wrong:
            with subtests.test(sort=sort, cursor=text[:40]):
                answer = service.client.get(url + text)
                assert answer.status_code == 422
                assert answer.json()["errors"][0]["field"] == "cursor"


def test_log_is_paged_tailed_and_searched(service: RunningService) -> None:
    run = make_run(service.engine)
    with writing(service.engine) as session:
        (first,) = session.scalars(select(LogLine)).all()
        lines = [
            {"time": first.time, "level": "info", "message": f"line {i} 100%", "agent_steps": i}
            for i in range(10)
        ]
        run_service.add_log_lines(session, run.id, 1, lines)
    url = f"/api/v1/runs/{run.id}/log"

    def messages(**params: Any) -> list[str]:
        return [line["message"] for line in service.client.get(url, params=params).json()["items"]]

    everything = messages()
    assert everything == ["queued: created", *(f"line {i} 100%" for i in range(10))]
    page = service.client.get(url, params={"limit": 4}).json()
    rest = service.client.get(url, params={"cursor": page["next_cursor"]}).json()
    assert [line["message"] for line in page["items"] + rest["items"]] == everything
    assert rest["next_cursor"] is None
    assert messages(tail=True, limit=2) == everything[-2:]
    last_id = rest["items"][-1]["id"]
    assert messages(before=last_id, limit=2) == everything[-3:-1]
    assert messages(after=last_id) == []
    assert messages(after=rest["items"][-3]["id"]) == everything[-2:]
    assert messages(search="LINE 3") == ["line 3 100%"]
    assert messages(search="1_0%") == []
    assert messages(after=2**63 - 1) == []
    assert messages(before=2**63 - 1, limit=1) == everything[-1:]


def test_runs_of_a_view_are_named_by_what_differs(service: RunningService) -> None:
    engine, client = service.engine, service.client
    ids = [
        make_run(engine, seed=seed, config={"gamma": gamma}).id for gamma in (0.9, 0.99) for seed in (1, 2)
    ]
    ask = {"runs": [ids[0], new_id(), *ids[2:]]}
    answer = client.post("/api/v1/runs/names", json=ask).json()
    assert answer["shared"] == "PAAC · CartPole"
    assert [item["run"] for item in answer["items"]] == [ids[0], *ids[2:]]
    assert [item["name"] for item in answer["items"]] == ["γ 0.9", "γ 0.99 · seed 1", "γ 0.99 · seed 2"]
    assert client.delete(f"/api/v1/runs/{ids[0]}", params={"restorable": True}).status_code == 204
    assert client.post("/api/v1/runs/names", json=ask).json() == answer, "a deleted run can be restored"
    beside = client.post("/api/v1/runs/names", json=ask | {"beside": ["algorithm", "environment"]}).json()
    assert beside == answer | {"shared": ""}
    assert client.post("/api/v1/runs/names", json={"runs": []}).json() == {"shared": "", "items": []}
