"""What version 0.1.0 stored is read by the engine and by migrations: see `tests/golden/generate.py`."""

import json
import lzma
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.db.migrate import check, upgrade
from backend.specs.run import parse_run_spec
from tests.golden import engine
from tests.golden.home import DATA, RUNS, UNFINISHED, assert_same, expected, unpack, with_new_fields
from workers.engine.methods.registry import METHODS

SERIES = expected("series")
RESUMED = expected("resumed")
DATABASES = expected("databases")
LATER = expected("later")
"""Databases of later revisions: see `tests/golden/later.py`."""
NEWEST = max(LATER)
PARTS = ("steps", "metrics", "episodes", "state")
"""Of a same-seed series."""

RTOL = 3e-3
ATOL = 1e-6
"""Tolerances for another CPU: without vector instructions a policy loss near zero differed by 1.8e-3, all
else by less than 9e-4. A learning rate that is 1 % higher changes losses by 0.3 to 1.7, a gamma of 0.9895 by
0.04 to 0.9."""

RENAMED = {"picture_size": "observation_size", "own": "custom"}
"""Fields of specs that have another name since, by migration 0010."""
RENAMED_COLUMNS = {"hosts": {"own_environments": "custom_environments"}}


def test_home_holds_a_run_of_every_method_of_version_0_1_0(stored: dict[str, dict[str, Any]]) -> None:
    stored_methods = {run["spec"]["algorithm"] for run in stored.values()}
    assert stored_methods <= METHODS.keys()
    assert len(stored_methods) == 9
    assert set(stored) == {*RUNS, UNFINISHED}


def _resume(unpacked: Path, stored: dict[str, dict[str, Any]], name: str, folder: Path) -> None:
    run, wanted = stored[name], RUNS[name]
    shutil.copytree(unpacked / "runs" / run["id"], folder / "run")
    # Far enough for trainers on a busy machine to have updated: actors do not wait for them.
    bound = run["agent_steps"] + (200 if name in engine.RESUMED else 1_000)
    logged = engine.go_on(folder / "run", run["spec"], run["file"], bound)
    started = next(event for event in logged if event["type"] == "started")
    assert (started["resumed_from"], started["agent_steps"]) == (run["file"], run["agent_steps"])
    ended = logged[-1]
    assert (ended["type"], ended["state"]) == ("ended", "finished"), ended
    report = [event for event in logged if event["type"] == "report"][-1]
    assert report["agent_steps"] >= bound
    for counter in ("updates", "frames", "wall_time_s"):
        assert report[counter] > wanted[counter]
    for counter in ("episodes", "best_return"):
        assert report[counter] >= wanted[counter]
    new = [event for event in logged if event["type"] == "points"]
    # While processes start, metrics may be logged before any agent step.
    assert min(step for event in new for step in event["agent_steps"]) >= run["agent_steps"]
    # One report may lack what is measured every few seconds, and a short stretch an episode's end.
    own = {event["metric"] for event in new if event["metric"].startswith(("loss/", "speed/"))}
    assert own == {key for key in wanted["series"] if key.startswith(("loss/", "speed/"))}
    assert "checkpoint" in {event["type"] for event in logged}


@pytest.mark.parametrize("name", list(engine.RESUMED))
def test_synchronous_method_resumes_from_its_checkpoint(
    unpacked: Path, stored: dict[str, dict[str, Any]], name: str, tmp_path: Path
) -> None:
    _resume(unpacked, stored, name, tmp_path)


@pytest.mark.service
@pytest.mark.parametrize("name", ["one_step_q", "one_step_sarsa", "n_step_q", "a3c", "live settings", "ga3c"])
def test_asynchronous_method_resumes_from_its_checkpoint(
    unpacked: Path, stored: dict[str, dict[str, Any]], name: str, tmp_path: Path
) -> None:
    _resume(unpacked, stored, name, tmp_path)


@pytest.mark.service
@pytest.mark.long
def test_gorila_resumes_from_its_checkpoint(
    unpacked: Path, stored: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    _resume(unpacked, stored, "gorila_dqn", tmp_path)


@pytest.mark.parametrize("name", [name for name, run in RUNS.items() if "played" in run])
def test_stored_checkpoint_plays_as_it_did(
    unpacked: Path, stored: dict[str, dict[str, Any]], name: str
) -> None:
    run = stored[name]
    file = unpacked / "runs" / run["id"] / "checkpoints" / run["file"]
    assert engine.score(run["spec"], file) == RUNS[name]["played"]


@pytest.mark.parametrize("name", RUNS)
def test_stored_event_log_holds_the_recorded_points(
    unpacked: Path, stored: dict[str, dict[str, Any]], name: str
) -> None:
    logged = list(engine.events_of(unpacked / "runs" / stored[name]["id"], 1))
    found: Counter[str] = Counter()
    for event in logged:
        if event["type"] == "points":
            found[f"{event['metric']} {event['source']}".strip()] += len(event["value"])
    assert found == {key: its[0] for key, its in RUNS[name]["series"].items()}
    assert logged[-1]["type"] == "ended"


def _assert_same_series(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    now = {part: wanted[part] for part in PARTS}
    assert_same(found, now | {"state": _current_state(now["state"])}, rtol=RTOL, atol=ATOL)


def _current_state(state: dict[str, Any]) -> dict[str, Any]:
    """A learner's state as it is stored now: dqn's optimizer was one of Gorila's parameter shards."""
    if "shard" not in state:
        return state
    kept = {name: its for name, its in state.items() if name not in ("shard", "learner")}
    return kept | {"optimizer": state["shard"]["statistics"], "updates": state["shard"]["updates"]}


@pytest.mark.parametrize("name", SERIES)
def test_same_seed_gives_the_same_series(name: str) -> None:
    wanted = SERIES[name]
    found = engine.train(wanted["request"], wanted["advances"])
    _assert_same_series(found, wanted)


@pytest.mark.parametrize("name", RESUMED)
def test_resumed_learner_gives_the_same_series(
    unpacked: Path, stored: dict[str, dict[str, Any]], name: str
) -> None:
    run, wanted = stored[name], RESUMED[name]
    assert run["file"] == wanted["checkpoint"]
    asked = ("algorithm", "environment", "seed", "config", "environment_config")
    request = {name: run["spec"][name] for name in asked} | {"device": "cpu"}
    file = unpacked / "runs" / run["id"] / "checkpoints" / run["file"]
    found = engine.train(request, engine.RESUMED[name], resume=file)
    _assert_same_series(found, wanted)


def test_stored_specs_parse_to_themselves(unpacked: Path, stored: dict[str, dict[str, Any]]) -> None:
    specs = json.loads(lzma.decompress((DATA / "specs.json.xz").read_bytes()))
    specs |= {name: run["spec"] for name, run in stored.items()}
    for path in unpacked.glob("runs/*/spec.json"):
        specs[path.parent.name] = json.loads(path.read_text())
    assert len(specs) > 100
    for name, spec in specs.items():
        assert parse_run_spec(spec).model_dump(mode="json") == with_new_fields(_renamed(spec)), name


def _renamed(value: Any) -> Any:
    """A stored JSON value with the current names."""
    if isinstance(value, dict):
        return {RENAMED.get(key, key): _renamed(its) for key, its in value.items()}
    return value


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database at each revision."""
    folder = unpack("databases", tmp_path_factory.mktemp("golden-databases") / "databases")
    for path in unpack("later", folder / "later").iterdir():
        path.rename(folder / path.name)
    return folder


@pytest.mark.parametrize(
    "revision",
    [
        *DATABASES,
        *(pytest.param(each, marks=() if each in ("0010", NEWEST) else pytest.mark.long) for each in LATER),
    ],
)
def test_old_database_upgrades_with_its_rows(databases: Path, revision: str, tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite3"
    shutil.copyfile(databases / f"{revision}.sqlite3", path)
    before = _rows(path)
    assert {table: len(rows) for table, rows in before.items()} == (DATABASES | LATER)[revision]
    assert before["alembic_version"] == [{"version_num": revision}]
    upgrade(f"sqlite:///{path}")
    check(f"sqlite:///{path}")
    after = _rows(path)
    for table, rows in before.items():
        if table == "alembic_version":
            continue
        wanted = [_current_row(table, row, revision) for row in rows]
        names = list(wanted[0]) if wanted else []
        found = [{name: _parsed(row[name]) for name in names} for row in after[table]]
        assert found == wanted, table


def _current_row(table: str, row: dict[str, Any], revision: str) -> dict[str, Any]:
    """A row of an earlier revision as migrations leave it."""
    if revision < "0012" and row.get("protocol") == "noop_starts":
        row["protocol"] = "noop_starts_5min"
    if revision < "0012" and row.get("metric") == "eval/noop_starts/mean_return":
        row["metric"] = "eval/noop_starts_5min/mean_return"
    if revision < "0016" and row.get("password_hash") == "correct horse":
        row["password_hash"] = None
    columns = RENAMED_COLUMNS.get(table, {})
    values = {columns.get(name, name): _parsed(value) for name, value in row.items()}
    return {name: _renamed(its) if table in ("runs", "hosts") else its for name, its in values.items()}


def _parsed(value: Any) -> Any:
    """The value of a JSON column, which may be written in other ways."""
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


def _rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: [dict(row) for row in database.execute(f'SELECT * FROM "{name}" ORDER BY rowid')]
            for [name] in tables
            if not name.startswith("sqlite_")
        }
