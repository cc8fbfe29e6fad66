import csv
import json
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pyarrow as pa
import pytest
from sqlalchemy import update

from backend.coordination import claims
from backend.coordination.context import Context
from backend.db import ExternalSource, RemovedFile, Run, Series
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.external import files, uploads
from backend.fleet.storage.service import SHORT_GRACE_S
from backend.platform.errors import Unavailable
from tests.support.arrow import arrow_stream
from tests.support.external import SOURCE, batch, checkpoint, create, drawn, episodes, send, upload
from tests.support.rows import CARTPOLE, external_request
from tests.support.service import RunningService, created_run
from workers.clean_up import delete_removed_files

pytestmark = pytest.mark.service


def test_external_run_is_running_immediately_and_is_never_claimed(service: RunningService) -> None:
    run = create(service.client)
    assert (run["origin"], run["state"], run["name"]) == ("external", "running", "my_ppo CartPole-v1 seed 3")
    assert run["spec"]["config"] == external_request()["config"]
    assert (run["progress"], run["time_left_s"], run["attempt"]) == (None, None, 0)
    own = created_run(service.client.post("/api/v1/runs", json=CARTPOLE | {"origin": "callboard"}))
    assert (own["origin"], own["state"]) == ("callboard", "queued")
    listed = service.client.get("/api/v1/runs", params={"filter": "origin:external"}).json()
    assert [item["id"] for item in listed["items"]] == [run["id"]]
    detail = service.client.get(f"/api/v1/runs/{run['id']}").json()
    assert [transition["after"] for transition in detail["transitions"]] == ["running"]


def test_points_of_a_batch_have_the_episodes_that_had_ended_at_them(service: RunningService) -> None:
    run = create(service.client)
    series: list[dict[str, Any]] = [
        {
            "metric": metric,
            "agent_steps": steps,
            "wall_time_s": [1.0] * len(steps),
            "value": [1.0] * len(steps),
        }
        for metric, steps in (("charts/episodic_return", [10, 20, 30]), ("losses/policy", [5, 10, 25, 40]))
    ]
    for sequence, shift in ((1, 0), (2, 40)):
        later = [row | {"agent_steps": [step + shift for step in row["agent_steps"]]} for row in series]
        send(service.client, run, "points", {"source": SOURCE, "sequence": sequence, "series": later})
    answer = service.client.get(f"/api/v1/runs/{run['id']}/export", params={"format": "csv"})
    rows = [*csv.DictReader(answer.text.splitlines())]
    losses = [int(row["episodes"]) for row in rows if row["metric"] == "losses/policy"]
    assert losses == [0, 1, 2, 3, 3, 4, 5, 6]


def test_points_and_episodes_are_drawn_and_scored(service: RunningService) -> None:
    run = create(service.client)
    assert send(service.client, run, "points", batch(1, [1.0, None, 3.0])) == {
        "sequence": 1,
        "stored": 3,
        "dropped": 0,
        "dropped_rows": [],
        "dropped_in_all": 0,
    }
    assert drawn(service.client, run, "loss/policy")["mean"] == [1.0, None, 3.0]
    assert send(service.client, run, "episodes", episodes(2, [10.0] * 50))["stored"] == 50
    send(service.client, run, "episodes", episodes(3, [20.0] * 75, first=50))
    assert drawn(service.client, run, "rollout/episode_return")["n_total"] == 125
    after = service.client.get(f"/api/v1/runs/{run['id']}").json()
    assert after["score"] == pytest.approx((25 * 10 + 75 * 20) / 100)
    assert (after["best_return"], after["episodes"], after["agent_steps"]) == (20.0, 125, 12_500)
    assert (after["frames"], after["wall_time_s"]) == (12_500, 125.0)
    # 4,998 agent steps in the 49 s from the last point to 50 s, then 7,500 in 75 s, the older of less weight.
    newer = (1 - math.exp(-75 / 120)) / (1 - math.exp(-125 / 120))
    expected = newer * 100 + (1 - newer) * 4_998 / 49
    assert after["agent_steps_per_s"] == pytest.approx(expected, rel=1e-3)
    exported = service.client.get(f"/api/v1/runs/{run['id']}/export", params={"format": "csv"})
    assert exported.status_code == 200
    assert exported.text.count("rollout/episode_return") == 125


def test_score_leaves_out_returns_that_are_not_finite(service: RunningService) -> None:
    run = create(service.client)
    send(service.client, run, "episodes", episodes(1, [10.0] * 100))
    lost = episodes(2, [0.0] * 100, first=100)
    send(
        service.client,
        run,
        "episodes",
        lost | {"episodes": [row | {"return": "NaN"} for row in lost["episodes"]]},
    )
    assert service.client.get(f"/api/v1/runs/{run['id']}").json()["score"] == 10.0


def test_batch_that_is_sent_again_changes_nothing(service: RunningService) -> None:
    run = create(service.client)
    for _ in range(2):
        answers = [send(service.client, run, "points", batch(1, [1.0, 2.0]))]
        lines = [{"time": "2026-01-31T10:00:00Z", "level": "warning", "message": "one line"}]
        answers.append(send(service.client, run, "log", {"source": SOURCE, "sequence": 2, "lines": lines}))
        answers.append(send(service.client, run, "episodes", episodes(3, [5.0])))
    stored = {"sequence": 3, "stored": 0, "dropped": 0, "dropped_rows": [], "dropped_in_all": 0}
    assert answers == [stored] * 3
    assert drawn(service.client, run, "loss/policy")["n_total"] == 2
    assert drawn(service.client, run, "rollout/episode_length")["mean"] == [100.0]
    log = service.client.get(f"/api/v1/runs/{run['id']}/log").json()["items"]
    assert [(line["level"], line["message"]) for line in log if "one" in line["message"]] == [
        ("warning", "one line")
    ]
    other = batch(1, [7.0], first=2) | {"source": new_id()}
    assert send(service.client, run, "points", other)["stored"] == 1


def test_points_of_a_script_that_logs_once_in_a_while_are_one_request(sqlite_service: RunningService) -> None:
    """A spool joins them to requests of at most 990,000 bytes."""
    client = sqlite_service.client
    run = create(client)
    single = [{"metric": f"loss/{at % 10}", "agent_steps": [at], "frames": [at], "wall_time_s": [0.5],
               "value": [1.5]} for at in range(9_500)]  # fmt: skip
    body = json.dumps({"source": SOURCE, "sequence": 1, "series": single}, separators=(",", ":"))
    assert 800_000 < len(body) < 990_000
    answer = client.post(
        f"/api/v1/runs/{run['id']}/points", content=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json().get("stored")) == (200, 9_500), answer.text


def test_batch_after_a_gap_is_refused(service: RunningService) -> None:
    run = create(service.client)
    send(service.client, run, "points", batch(1, [1.0]))
    answer = service.client.post(f"/api/v1/runs/{run['id']}/points", json=batch(3, [1.0], first=1))
    assert answer.status_code == 409
    assert answer.json()["errors"] == [{"field": "sequence", "message": "must be 2, got 3"}]
    assert drawn(service.client, run, "loss/policy")["n_total"] == 1


def test_agent_steps_that_go_back_are_dropped_and_logged(service: RunningService) -> None:
    run = create(service.client)
    steps: dict[str, Any] = {"agent_steps": [5, 3, 5, 8, 7], "wall_time_s": [1.0] * 5}
    answer = send(service.client, run, "points", batch(1, [1.0, 2.0, 3.0, 4.0, 5.0], **steps))
    reason = {"reason": "agent_steps_decrease", "rows": 2, "metric": "loss/policy", "agent_steps": 8}
    dropped = {"dropped": 2, "dropped_rows": [reason], "dropped_in_all": 2}
    assert answer == {"sequence": 1, "stored": 3} | dropped
    later = send(service.client, run, "points", batch(2, [6.0], first=7))
    assert (later["dropped"], later["dropped_in_all"]) == (1, 3)
    again = send(service.client, run, "points", batch(2, [6.0], first=7))
    assert (again["dropped"], again["dropped_rows"], again["dropped_in_all"]) == (0, [], 3)
    assert drawn(service.client, run, "loss/policy")["mean"] == [1.0, 3.0, 4.0]
    log = service.client.get(f"/api/v1/runs/{run['id']}/log").json()["items"]
    assert [line["message"] for line in log if "have been dropped" in line["message"]] == [
        f"2 rows of source {SOURCE} have been dropped; the latest: 2 of loss/policy and others, behind the 8 "
        "agent steps reached"
    ]


def provenance(sequence: int, source: str = SOURCE, **changes: Any) -> dict[str, Any]:
    """What a process says of itself."""
    described = {"host": "lab-3", "command": ["train"], "python": "3.11.7"} | changes
    return {"source": source, "sequence": sequence, "provenance": described, "output": "a" * 50_000}


def test_where_processes_came_from_is_bounded(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.external.service.MAX_PROCESSES", 2)
    run = create(service.client)
    first = SOURCE
    assert send(service.client, run, "provenance", provenance(1, variables={"RANK": "1"}))["stored"] == 1
    more = {"source": first, "sequence": 2, "output": "b" * 20_000}
    for _ in range(2):  # the second time, it is stored already
        send(service.client, run, "provenance", more)
    whole = service.client.get(f"/api/v1/runs/{run['id']}/processes/{first}").json()
    assert (whole["host"], whole["variables"], whole["commit"]) == ("lab-3", {"RANK": "1"}, None)
    assert whole["output"] == "a" * (65_536 - 20_000) + "b" * 20_000
    others = [f"{SOURCE[:-1]}{digit}" for digit in "XY"]
    for source in others:
        send(service.client, run, "provenance", provenance(1, source))
    detail = service.client.get(f"/api/v1/runs/{run['id']}").json()
    assert [process["source"] for process in detail["processes"]] == sorted([first, *others])[1:]
    assert service.client.get(f"/api/v1/runs/{run['id']}/processes/{'0' * 26}").status_code == 404


INVALID_BATCHES: list[tuple[str, Any, str]] = [
    ("points", batch(1, [1.0], metric="loss\n"), "series.0.metric"),
    ("points", batch(1, [1.0], metric=""), "series.0.metric"),
    ("points", batch(1, [1.0], metric="a/" + "b" * 10_000), "series.0.metric"),
    ("points", batch(1, [1.0], agent_steps=[-1]), "series.0.agent_steps.0"),
    ("points", batch(1, [1.0], agent_steps=[1.5]), "series.0.agent_steps.0"),
    ("points", batch(1, [1.0], agent_steps=[1, 2]), "series.0"),
    ("points", batch(1, [1.0], wall_time_s=[math.nan]), "series.0.wall_time_s.0"),
    ("points", batch(1, [0.0] * 10_001), "series.0.agent_steps"),
    ("points", {**batch(1, [1.0]), "series": batch(1, [1.0] * 6_000)["series"] * 2}, "series"),
    ("points", batch(0, [1.0]), "sequence"),
    ("points", batch(1, [1.0]) | {"source": "me"}, "source"),
    ("points", batch(1, [1.0]) | {"colour": "red"}, "colour"),
    ("points", [1], "body"),
    ("episodes", episodes(1, [math.nan]), "episodes.0.return"),
    *(
        (
            "log",
            {"source": SOURCE, "sequence": 1, "lines": [{"time": time, "message": "x"}]},
            "lines.0.time",
        )
        for time in (
            "then",
            "0001-01-01T00:00:00+14:00",
            "1969-12-31T23:59:59Z",
            "9999-01-01T00:00:00Z",
            "9999-12-31T23:59:59-12:00",
        )
    ),
    ("provenance", provenance(1, diff="\u00e9" * 140_000), "provenance.diff"),
    ("provenance", provenance(1, variables={"HOME": "/"}), "provenance.variables.HOME.[key]"),
    ("provenance", provenance(1) | {"output": "x" * 70_000}, "output"),
    ("heartbeat", {"state": "queued"}, "state"),
    ("heartbeat", {"reason": "r" * 10_000}, "reason"),
]
"""What is sent, and the field that its refusal names."""


def test_invalid_batch_is_refused_and_stores_nothing(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    run = create(sqlite_service.client)
    for what, body, field in INVALID_BATCHES:
        with subtests.test(what=what, field=field):
            answer = sqlite_service.post_json(f"/api/v1/runs/{run['id']}/{what}", body)
            assert answer.status_code == 422, answer.text
            assert field in {error["field"] for error in answer.json()["errors"]}, answer.text
    with reading(sqlite_service.engine) as session:
        assert session.query(Series).count() == session.query(ExternalSource).count() == 0


INVALID_RUNS: list[tuple[dict[str, Any], str]] = [
    ({"origin": "moon"}, "origin"),
    ({"origin": 1}, "origin"),
    ({"name": "n" * 10_000}, "name"),
    ({"algorithm": ""}, "algorithm"),
    ({"environment": 'a"b'}, "environment"),
    ({"seed": -1}, "seed"),
    ({"stop": {"agent_steps": 1}}, "stop"),
    ({"config": {"lr": math.nan}}, "config.lr"),
    ({"config": {"lr": 10**30}}, "config.lr"),
    ({"config": {"optim": {"lr": 1.0}}}, "config.optim"),
    ({"config": {"a\tb": 1}}, "config.a\tb"),
    ({"config": {"n" * 101: 1}}, "config." + "n" * 100),
    ({"config": {"text": "t" * 1_001}}, "config.text"),
    ({"config": {"list": [0] * 101}}, "config.list"),
    ({"config": {f"s{i}": i for i in range(501)}}, "config"),
    ({"config": [1]}, "config"),
]


def test_invalid_external_run_is_refused(sqlite_service: RunningService, subtests: pytest.Subtests) -> None:
    for changes, field in INVALID_RUNS:
        with subtests.test(field=field):
            answer = sqlite_service.post_json("/api/v1/runs", external_request(**changes))
            assert answer.status_code == 422, answer.text
            assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert sqlite_service.client.get("/api/v1/runs").json()["total"] == 0


UNSTORABLE_PARTS: list[tuple[dict[str, Any], str]] = [
    ({"config": {"x": "\udfff"}}, "config.x"),
    ({"config": {"x": [1, "\ud800"]}}, "config.x.1"),
    ({"config": {"\ud800": 1}}, "config.\ud800"),
    ({"config": {"x": "\0"}}, "config.x"),
    ({"config_details": {"x": {"path": ["\ud800"]}}}, "config_details.x.path.0"),
    ({"config_details": {"x": {"type": "\ud800"}}}, "config_details.x.type"),
    ({"import_options": {"step": "\ud800"}}, "import_options.step"),
    ({"import_options": {"a": [{"\ud800": 1}]}}, "import_options.a.0.\ud800"),
]


def test_text_without_a_utf_8_form_is_refused_in_every_setting(
    sqlite_service: RunningService, subtests: pytest.Subtests
) -> None:
    run = create(sqlite_service.client)
    for part, field in UNSTORABLE_PARTS:
        bodies = [("/api/v1/runs", external_request(**part))]
        if "import_options" not in part:
            bodies.append((f"/api/v1/runs/{run['id']}/config", {"source": SOURCE, "sequence": 1} | part))
        for path, body in bodies:
            with subtests.test(path=path, field=ascii(field)):
                answer = sqlite_service.post_json(path, body)
                assert answer.status_code == 422, answer.text
                assert field in {error["field"] for error in answer.json()["errors"]}
    assert sqlite_service.client.get("/api/v1/runs").json()["total"] == 1


def test_seed_of_an_external_run_is_any_whole_number_below_2_to_the_63(
    sqlite_service: RunningService,
) -> None:
    given = (0, 5, 6.0, "7", 2**31, 2**53 + 1, str(2**53 + 3), 2**63 - 2, str(2**63 - 1))
    for seed in given:
        run = created_run(sqlite_service.client.post("/api/v1/runs", json=external_request(seed=seed)))
        assert (run["seed"], run["spec"]["seed"]) == (int(seed), int(seed))
        assert run["name"].endswith(f"seed {int(seed)}")
        matching = sqlite_service.client.get("/api/v1/runs", params={"filter": f"seed:{int(seed)}"}).json()
        assert [item["id"] for item in matching["items"]] == [run["id"]], "no other seed is equal to it"
    for refused in (-1, 2**63, 2.0**63, 1.5, "1.5", "-1", "", "one", True, [1]):
        answer = sqlite_service.post_json("/api/v1/runs", external_request(seed=refused))
        assert answer.status_code == 422, refused
        assert [error["field"] for error in answer.json()["errors"]] == ["seed"]


def test_refusals_of_data_have_a_code_for_programs(service: RunningService) -> None:
    run = create(service.client)
    own = created_run(service.client.post("/api/v1/runs", json=CARTPOLE))["id"]
    path = f"/api/v1/runs/{run['id']}"
    cases: list[tuple[str, Any, int, str]] = [
        ("/api/v1/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV/points", batch(1, [1.0]), 404, "run_not_found"),
        (f"/api/v1/runs/{own}/points", batch(1, [1.0]), 409, "run_not_external"),
        (f"{path}/points", batch(3, [1.0]), 409, "batch_missing"),
        (f"{path}/points", batch(0, [1.0]), 422, "invalid_fields"),
        (f"{path}/log", {"lines": 1}, 422, "invalid_fields"),
        ("/api/v1/runs", external_request(seed=-1), 422, "invalid_fields"),
    ]
    for address, body, status, code in cases:
        answer = service.client.post(address, json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), address
        assert answer.json()["expected"] == (1 if code == "batch_missing" else None)
    nowhere = service.client.post("/api/v1/nothing", json={})
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, None), "only where programs need one"


def test_silent_external_run_is_lost_until_it_sends_again(service: RunningService) -> None:
    run = create(service.client)

    def state_after_silence() -> str:
        with writing(service.engine) as session:
            early = session.get_one(Run, run["id"]).created_at
            session.execute(update(Run).values(lease_expires_at=early.replace(year=2020)))
        assert service.client.get(f"/api/v1/runs/{run['id']}").json()["silent_s"] > 60  # before it is noticed
        with writing(service.engine) as session:
            assert claims.has_expired(session)
            assert claims.expire(session) == [run["id"]]
        return str(service.client.get(f"/api/v1/runs/{run['id']}").json()["state"])

    assert state_after_silence() == "lost"
    answer = send(service.client, run, "heartbeat", {})
    assert answer == {"state": "running", "stop_requested": False} | {
        "agent_steps": 0, "wall_time_s": 0.0, "step_unit": "agent_steps", "records_scripts": True
    }  # fmt: skip
    assert service.client.get(f"/api/v1/runs/{run['id']}").json()["silent_s"] < 60
    assert state_after_silence() == "lost"
    send(service.client, run, "points", batch(1, [1.0], wall_time_s=[0.5]))
    by_clock = {"run": run["id"], "metric": "loss/policy", "x": "clock_time_s"}
    assert service.client.get("/api/v1/series", params=by_clock).json()["series"][0]["x"] == [0.5]
    assert service.client.get(f"/api/v1/runs/{run['id']}").json()["state"] == "running"
    stopped = service.client.post(f"/api/v1/runs/{run['id']}/stop").json()
    assert stopped["state"] == "stopping"
    reached = {"agent_steps": 0, "wall_time_s": 0.5, "step_unit": "agent_steps", "records_scripts": True}
    answer = send(service.client, run, "heartbeat", {})
    assert answer == {"state": "stopping", "stop_requested": True} | reached
    assert state_after_silence() == "stopped"
    # The script was out of reach, and is to end; one that is started again continues the run.
    answer = send(service.client, run, "heartbeat", {})
    assert answer == {"state": "stopped", "stop_requested": True} | reached
    again = send(service.client, run, "heartbeat", {"resume": True})
    assert again == {"state": "running", "stop_requested": False} | reached
    body = {"state": "failed", "resume": True}
    refused = service.client.post(f"/api/v1/runs/{run['id']}/heartbeat", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "resume")


def test_script_ends_and_resumes_its_run(service: RunningService) -> None:
    run = create(service.client)
    send(service.client, run, "heartbeat", {"state": "failed", "reason": "out of memory"})
    failed = service.client.get(f"/api/v1/runs/{run['id']}").json()
    assert (failed["state"], failed["state_reason"], failed["error"]) == (
        "failed",
        "out of memory",
        "out of memory",
    )
    # What was sent late is stored, and changes nothing else.
    send(service.client, run, "points", batch(1, [1.0]))
    assert service.client.get(f"/api/v1/runs/{run['id']}").json()["state"] == "failed"
    for state in ("running", "finished", "finished", "running", "stopped"):
        assert send(service.client, run, "heartbeat", {"state": state})["state"] == state
    detail = service.client.get(f"/api/v1/runs/{run['id']}").json()
    assert [transition["after"] for transition in detail["transitions"]] == [
        "running",
        "failed",
        "running",
        "finished",
        "running",
        "stopped",
    ]
    assert detail["lease_expires_at"] is None


def test_actions_on_a_run_without_a_spec_of_callboard_are_refused_with_the_reason(
    sqlite_service: RunningService,
) -> None:
    client = sqlite_service.client
    run = create(client)
    path = f"/api/v1/runs/{run['id']}"
    answers = [
        client.post(f"{path}/kill"),
        client.post(f"{path}/resume"),
        client.post(f"{path}/fork"),
        client.post(f"{path}/evaluations", json={}),
        client.patch(f"{path}/settings", json={"config": {"lr": 0.1}}),
    ]
    assert [answer.status_code for answer in answers] == [409] * 5
    assert all("the run is trained elsewhere: " in answer.json()["detail"] for answer in answers)
    own = created_run(client.post("/api/v1/runs", json=CARTPOLE))
    for what, body in (("points", batch(1, [1.0])), ("heartbeat", {}), ("episodes", episodes(1, [1.0]))):
        answer = client.post(f"/api/v1/runs/{own['id']}/{what}", json=body)
        assert answer.status_code == 409
        assert "only external runs" in answer.json()["detail"]
    missing = client.post(f"/api/v1/runs/{new_id()}/heartbeat")
    assert missing.status_code == 404


def test_arrow_stream_is_stored_like_json(service: RunningService) -> None:
    run = create(service.client)
    stream = arrow_stream(
        {
            "metric": pa.array(["loss/policy", "loss/value"] * 2).dictionary_encode(),
            "agent_steps": pa.array([1, 1, 2, 2], pa.int64()),
            "wall_time_s": pa.array([0.5, 0.5, 1.0, 1.0]),
            "value": pa.array([1.0, 5.0, 2.0, None]),
        }
    )
    path = f"/api/v1/runs/{run['id']}/points"
    headers = {"Content-Type": "application/vnd.apache.arrow.stream", "Callboard-Source": SOURCE}
    for stored in (4, 0):
        answer = service.client.post(path, content=stream, headers=headers | {"Callboard-Sequence": "1"})
        none = {"dropped": 0, "dropped_rows": [], "dropped_in_all": 0}
        assert answer.json() == {"sequence": 1, "stored": stored} | none
    assert drawn(service.client, run, "loss/policy")["mean"] == [1.0, 2.0]
    assert drawn(service.client, run, "loss/value")["mean"] == [5.0, None]
    refusals = {
        "Callboard-Sequence": service.client.post(path, content=stream, headers=headers),
        "Content-Type": service.client.post(path, content=stream, headers={"Content-Type": "text/csv"}),
        "body": service.client.post(path, content=b"x", headers=headers | {"Callboard-Sequence": "2"}),
    }
    for field, answer in refusals.items():
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_upload_is_appended_in_order_and_used_once(service: RunningService) -> None:
    client = service.client
    run = create(client)
    path = f"/api/v1/runs/{run['id']}"
    assert upload(client, run, b"half").json() == {"received_bytes": 4}
    again = upload(client, run, b"half")
    assert (again.status_code, again.json()["expected"]) == (409, 4)
    assert again.json()["errors"] == [{"field": "offset", "message": "must be 4, got 0"}]
    body = checkpoint(1, b"half of it", agent_steps=5, score=2.0)
    early = client.post(f"{path}/checkpoints", json=body)
    assert (early.status_code, early.json()["errors"][0]["field"]) == (409, "upload")
    assert upload(client, run, b" of it", offset=4).json() == {"received_bytes": 10}
    for stored in (1, 0, 0):
        assert send(client, run, "checkpoints", body)["stored"] == stored
    [row] = client.get(f"{path}/checkpoints").json()["items"]
    assert (row["agent_steps"], row["frames"], row["score"], row["size_bytes"]) == (5, 5, 2.0, 10)
    assert client.get(f"/api/v1/checkpoints/{row['id']}/file").content == b"half of it"
    twice = client.post(f"{path}/checkpoints", json=body | {"sequence": 2})
    assert [error["field"] for error in twice.json()["errors"]] == ["upload"]
    upload(client, run, b"half of iT")
    damaged = client.post(f"{path}/checkpoints", json=body | {"sequence": 2, "agent_steps": 6})
    assert [error["field"] for error in damaged.json()["errors"]] == ["sha256"]
    assert upload(client, run, b"x").json() == {"received_bytes": 1}, "the damaged upload is deleted"
    sizes = {kind["kind"]: kind["n_bytes"] for kind in client.get("/api/v1/storage").json()["kinds"]}
    assert sizes["checkpoints"] == 10


def _fail(*arguments: object, **fields: object) -> None:
    raise Unavailable("the database is away", retry_after_s=1)


def test_clean_up_deletes_stored_files_without_a_row_and_unfinished_uploads_alone(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, content = service.client, b"parameters"
    run = create(client)
    path, body = f"/api/v1/runs/{run['id']}/checkpoints", checkpoint(1, content)
    upload(client, run, content)
    with monkeypatch.context() as failing:
        failing.setattr("backend.runs.checkpoints.service.add_external", _fail)
        assert client.post(path, json=body).status_code == 503
    folder = service.settings.home_dir / "artifacts" / "runs" / run["id"] / "checkpoints"
    [left] = folder.iterdir()
    with monkeypatch.context() as slow:
        slow.setattr("backend.fleet.storage.service.EXPECTED_S", -1.0)
        assert client.post(path, json=body).status_code == 503, "clean-up may have deleted the file"
    assert client.get(path).json()["items"] == []
    assert send(client, run, "checkpoints", body)["stored"] == 1
    [row] = client.get(path).json()["items"]
    assert row["file"] != left.name
    assert upload(client, run, b"never complete", name=new_id()).status_code == 200
    context = Context.from_settings(service.settings)
    try:
        assert delete_removed_files(context, grace_s=SHORT_GRACE_S) == 0, "their requests may still add rows"
        with writing(service.engine) as session:
            session.execute(update(RemovedFile).values(removed_at=datetime(2020, 1, 1, tzinfo=UTC)))
        # The two files without a row, and the parts of both uploads, of which those of the first are gone.
        assert delete_removed_files(context, grace_s=SHORT_GRACE_S) == 4
        assert context.store.sizes_of_uploads(run["id"]) == {}
    finally:
        context.close()
    assert [path.name for path in folder.iterdir()] == [row["file"]]
    assert client.get(f"/api/v1/checkpoints/{row['id']}/file").content == content


@pytest.mark.parametrize(
    ("what", "field"),
    [
        ({"suffix": "/../x"}, "suffix"),
        ({"suffix": ".Z"}, "suffix"),
        ({"upload": "../../etc/passwd"}, "upload"),
        ({"size_bytes": 2**40}, "size_bytes"),
        ({"sha256": "0"}, "sha256"),
        ({"score": math.inf}, "score"),
        ({"agent_steps": -1}, "agent_steps"),
    ],
)
def test_invalid_checkpoint_is_refused(
    sqlite_service: RunningService, what: dict[str, Any], field: str
) -> None:
    run = create(sqlite_service.client)
    body = json.dumps(checkpoint(1, b"x") | what)
    headers = {"Content-Type": "application/json"}
    answer = sqlite_service.client.post(
        f"/api/v1/runs/{run['id']}/checkpoints", content=body, headers=headers
    )
    assert answer.status_code in (400, 422)
    assert field == "score" or [error["field"] for error in answer.json()["errors"]] == [field]


def test_uploads_are_bounded(sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    client = sqlite_service.client
    run = create(client)
    monkeypatch.setattr("backend.external.uploads.MAX_UPLOAD_BYTES", 10)
    monkeypatch.setattr("backend.external.uploads.MAX_UNFINISHED_BYTES", 10)
    assert upload(client, run, b"x" * 10).status_code == 200
    for answer in (upload(client, run, b"x", offset=10), upload(client, run, b"")):
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == ["body"]
    too_many = upload(client, run, b"x" * 6, name=new_id())
    assert (too_many.status_code, too_many.headers["Retry-After"]) == (503, "30"), "not for good"
    own = created_run(client.post("/api/v1/runs", json=CARTPOLE))
    assert upload(client, own, b"x").status_code == 409
    assert upload(client, {"id": new_id()}, b"x").status_code == 404
    assert upload(client, run, b"x", name="x" * 26).status_code == 404


@pytest.mark.parametrize(
    ("kind", "limit", "field"),
    [
        ("checkpoints", "MAX_FILES", "upload"),
        ("checkpoints", "MAX_FILES_BYTES", "upload"),
        ("videos", "MAX_FILES", "upload"),
        ("videos", "MAX_VIDEO_BYTES", "size_bytes"),
    ],
)
def test_upload_that_is_refused_as_a_file_of_the_run_is_deleted(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch, kind: str, limit: str, field: str
) -> None:
    """Else it would count as unfinished, and the run could not send others."""
    monkeypatch.setattr(files, limit, 0)
    client, content = sqlite_service.client, b"x"
    run = create(client)
    assert upload(client, run, content).json() == {"received_bytes": 1}
    form = {"form": "file"} if kind == "videos" else {}
    answer = client.post(f"/api/v1/runs/{run['id']}/{kind}", json=checkpoint(1, content, **form))
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (422, [field])
    assert sqlite_service.app_state.artifacts.sizes_of_uploads(run["id"]) == {}


def test_whole_floats_are_integers_in_every_column(sqlite_service: RunningService) -> None:
    """R's jsonlite writes 100000 as 1e+05, Julia and Lua as 100000.0."""
    client = sqlite_service.client
    run = create(client)
    body = batch(1, [1.0, 2.0], agent_steps=[1e5, 200_000.0], frames=[4e5, 8e5])
    content = json.dumps(body).replace("100000.0", "1e+05")
    assert "1e+05" in content
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"/api/v1/runs/{run['id']}/points", content=content, headers=headers)
    assert (answer.status_code, answer.json()["stored"]) == (200, 2)
    row = client.get(f"/api/v1/runs/{run['id']}").json()
    assert (row["agent_steps"], row["frames"]) == (200_000, 800_000)


def test_part_that_its_schema_allows_is_stored_or_conflicts(sqlite_service: RunningService) -> None:
    client = sqlite_service.client
    run = create(client)
    documented = client.get("/openapi.json").json()["paths"]["/api/v1/runs/{run_id}/uploads/{upload}"]["put"]
    [offset] = (field["schema"] for field in documented["parameters"] if field["name"] == "offset")
    least = documented["requestBody"]["content"]["application/octet-stream"]["schema"]["minLength"]
    for at, status in ((offset["minimum"], 200), (offset["exclusiveMaximum"] - 1, 409)):
        for n in (least, least + 1):
            assert upload(client, run, b"x" * n, offset=at, name=new_id()).status_code == status


def test_scoped_token_writes_the_external_runs_that_it_has_created(service: RunningService) -> None:
    def script(name: str) -> httpx.Client:
        body = {"name": name, "role": "operator", "scope": "external_runs"}
        created = service.client.post("/api/v1/tokens", json=body)
        assert (created.status_code, created.json()["scope"]) == (201, "external_runs")
        headers = {"Authorization": f"Bearer {created.json()['token']}"}
        return httpx.Client(base_url=service.url, headers=headers, timeout=30)

    with script("first") as own, script("second") as other:
        run = create(own)
        assert send(own, run, "points", batch(1, [1.0]))["stored"] == 1
        writes = {
            "points": batch(2, [2.0], first=1),
            "episodes": episodes(2, [1.0]),
            "log": {"source": SOURCE, "sequence": 2, "lines": []},
            "heartbeat": {"state": "failed"},
            "checkpoints": checkpoint(2, b"x"),
        }
        upload = f"/api/v1/runs/{run['id']}/uploads/{SOURCE}"
        assert other.put(upload, params={"offset": 0}, content=b"x").status_code == 403
        for what, body in writes.items():
            assert other.post(f"/api/v1/runs/{run['id']}/{what}", json=body).status_code == 403, what
        path = f"/api/v1/runs/{run['id']}"
        refused = [
            own.get("/api/v1/runs"),
            own.get(path),
            own.patch(path, json={"name": "other"}),
            own.delete(path),
            own.post(f"{path}/stop"),
            own.post("/api/v1/runs", json=CARTPOLE),
            own.post("/api/v1/tokens", json={"name": "more"}),
            own.get("/api/v1/hosts"),
        ]
        assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert service.client.get(path).json()["state"] == "running"
    assert drawn(service.client, run, "loss/policy")["n_total"] == 1
    low = service.client.post(
        "/api/v1/tokens", json={"name": "x", "role": "viewer", "scope": "external_runs"}
    )
    assert [error["field"] for error in low.json()["errors"]] == ["scope"]


def test_concurrent_completions_of_an_upload_store_it_once(sqlite_service: RunningService) -> None:
    client, content = sqlite_service.client, b"x" * 1_000_000
    run = create(client)
    assert upload(client, run, content).status_code == 200
    body = checkpoint(1, content)

    def complete(_: int) -> int:
        return client.post(f"/api/v1/runs/{run['id']}/checkpoints", json=body).status_code

    with ThreadPoolExecutor(12) as threads:
        statuses = set(threads.map(complete, range(24)))
    assert statuses <= {200, 429, 503}, statuses
    assert len(client.get(f"/api/v1/runs/{run['id']}/checkpoints").json()["items"]) == 1


def test_unfinished_uploads_of_a_run_are_few(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_UNFINISHED", 2)
    run = create(sqlite_service.client)
    names = [new_id() for _ in range(3)]
    statuses = [upload(sqlite_service.client, run, b"x", name=name).status_code for name in names]
    assert statuses == [200, 200, 503]
    assert upload(sqlite_service.client, run, b"x", offset=1, name=names[0]).status_code == 200
