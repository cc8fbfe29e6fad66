from datetime import UTC, datetime
from typing import Any

import pytest
from httpx import Client
from sqlalchemy import Engine

from backend.analysis.comparisons.differences import MAX_FILE_CHARACTERS
from backend.db import LiveSettings, ScriptProcess
from backend.db.base import new_id
from backend.db.engine import writing
from backend.runs.live_settings.repository import APPLIED, REFUSED
from tests.support.rows import add_attempt, external_request, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

DIFF = "/api/v1/comparisons/diff"

PROVENANCE: dict[str, Any] = {
    "version": "0.1.0",
    "commit": "a" * 40,
    "dirty": False,
    "packages": {"python": "3.11.7", "torch": "2.5.1", "numpy": "2.1.0"},
    "command": ["python", "-m", "workers.engine"],
    "processor": "EPYC",
    "cpu_count": 16,
    "gpus": ["H200"],
    "device": "cuda",
}


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client


def diff(client: Client, *runs: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(DIFF, params={"run": runs}).json()
    return answer


def test_settings_and_origins_that_differ_are_listed(client: Client, engine: Engine) -> None:
    first = make_run(engine, config={"learning_rate": 0.01}).id
    other = make_run(engine, config={"learning_rate": 0.1}, seed=3, stop={"agent_steps": 500}).id
    add_attempt(engine, first, provenance=PROVENANCE)
    add_attempt(engine, other, 1, provenance=None)
    later = PROVENANCE | {
        "commit": "b" * 40,
        "dirty": True,
        "packages": {"python": "3.11.7", "torch": "2.6.0", "scipy": "1.14"},
        "device": "cpu",
    }
    add_attempt(engine, other, 2, provenance=later, host="b")
    answer = diff(client, first, other)
    assert [(s["path"], s["a"], s["b"]) for s in answer["config"]] == [
        ("seed", 0, 3),
        ("config.learning_rate", 0.01, 0.1),
        ("stop.agent_steps", 10_000, 500),
    ]
    assert answer["n_equal_settings"] > 10
    assert [(p["name"], p["a"], p["b"]) for p in answer["packages"]] == [
        ("numpy", "2.1.0", None),
        ("scipy", None, "1.14"),
        ("torch", "2.5.1", "2.6.0"),
    ]
    assert answer["n_equal_packages"] == 1
    assert [(fact["name"], fact["a"], fact["b"]) for fact in answer["code"]] == [
        ("Commit", "a" * 40, "b" * 40),
        ("Changed files", "no", "yes"),
    ]
    assert [(fact["name"], fact["a"], fact["b"]) for fact in answer["host"]] == [
        ("Host", "a", "b"),
        ("Device", "cuda", "cpu"),
    ]
    assert (answer["command"], answer["patch"]) == ([], [])
    assert [run["name"] for run in answer["runs"]] == ["lr 0.01", "lr 0.1"]
    assert "is not recorded" in answer["unknown"][0]
    assert answer["summary"] == ("Same except: Seed, Learning rate, Agent steps, code, 3 packages, host")


def test_equal_runs_have_no_difference(client: Client, engine: Engine) -> None:
    runs = [make_run(engine).id for _ in range(2)]
    for run in runs:
        add_attempt(engine, run, provenance=PROVENANCE)
    answer = diff(client, *runs)
    assert answer["summary"] == "No difference is recorded"
    lists = ("config", "live_changes", "code", "patch", "packages", "host", "command", "unknown")
    assert not any(answer[name] for name in lists)


def test_live_changes_that_took_effect_are_listed(client: Client, engine: Engine) -> None:
    first, other = make_run(engine).id, make_run(engine, seed=1).id
    with writing(engine) as session:
        session.add_all(
            LiveSettings(
                run_id=other,
                version=version,
                requested_at=datetime.now(UTC),
                changes={"learning_rate": rate},
                state=state,
                agent_steps=steps,
            )
            for version, rate, state, steps in (
                (1, 0.5, APPLIED, 100),
                (2, 9.0, REFUSED, None),
                (3, 0.2, APPLIED, 200),
            )
        )
    changes = diff(client, first, other)["live_changes"]
    assert [(c["run"], c["agent_steps"], c["path"], c["value"]) for c in changes] == [
        (other, 100, "config.learning_rate", 0.5),
        (other, 200, "config.learning_rate", 0.2),
    ]


def test_patches_of_scripts_are_compared_by_file(client: Client, engine: Engine) -> None:
    runs = [
        client.post("/api/v1/runs", json=external_request(seed=seed)).json()["items"][0]["id"]
        for seed in (0, 1)
    ]
    same = "diff --git a/net.py b/net.py\n+same\n"
    patches = [
        same + "diff --git a/train.py b/train.py\n-lr = 1\n",
        same + "diff --git a/new file.py b/new file.py\n+" + "x" * MAX_FILE_CHARACTERS,
    ]
    with writing(engine) as session:
        for number, (run, patch) in enumerate(zip(runs, patches, strict=True)):
            provenance = {
                "host": "lab",
                "command": ["python", "train.py", f"--lr={number}"],
                "python": "3.11",
                "packages": {},
                "commit": "c" * 40,
                "dirty": True,
                "variables": {},
            }
            session.add(ScriptProcess(run_id=run, source=new_id(), provenance=provenance, diff=patch))
    answer = diff(client, *runs)
    first, second = answer["patch"]
    assert first == {
        "file": "train.py",
        "a": "diff --git a/train.py b/train.py\n-lr = 1\n",
        "b": None,
        "is_cut": False,
    }
    assert (second["file"], second["a"], second["is_cut"]) == ("new file.py", None, True)
    assert len(second["b"]) == MAX_FILE_CHARACTERS
    assert [(fact["a"], fact["b"]) for fact in answer["command"]] == [
        ("python train.py --lr=0", "python train.py --lr=1")
    ]


@pytest.mark.parametrize(("n", "status"), [(1, 422), (3, 422)])
def test_diff_is_of_two_runs(client: Client, engine: Engine, n: int, status: int) -> None:
    runs = [make_run(engine, seed=seed).id for seed in range(n)]
    assert client.get(DIFF, params={"run": runs}).status_code == status
    assert client.get(DIFF, params={"run": [runs[0]] * 2}).status_code == 422
    assert client.get(DIFF, params={"run": [runs[0], "01JD3QZ6W9K0Y5T8H2V4B7N1XC"]}).status_code == 404
