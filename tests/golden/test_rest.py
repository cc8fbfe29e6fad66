"""What version 0.1.0 stored works over REST and with a new worker: see `tests/golden/generate.py`."""

import io
import shutil
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from backend.db.migrate import upgrade
from tests.golden.home import (
    HOST,
    RUNS,
    UNFINISHED,
    UNFINISHED_LOG,
    assert_same,
    digest,
    expected,
    facts,
    items,
    points,
    runs_by_name,
    unpack,
    with_new_fields,
)
from tests.support.installation import installation
from tests.support.redis_server import RedisServer
from tests.support.service import RunningService, created_run, running_service
from tests.support.waiting import until

pytestmark = pytest.mark.service

NEWEST = max(expected("later"))
"""The newest revision of which a database is stored."""


@contextmanager
def service_on(home: Path, redis_url: str) -> Iterator[RunningService]:
    """The web service on a home, its database brought to the newest revision; no worker."""
    url = f"sqlite:///{home / 'callboard.sqlite3'}"
    upgrade(url)
    with running_service(url, redis_url, home) as running:
        yield running


@pytest.fixture(scope="module")
def read_only(
    unpacked: Path, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """REST on a copy of the home that tests only read."""
    home = tmp_path_factory.mktemp("golden-read") / "home"
    shutil.copytree(unpacked, home)
    with service_on(home, redis_server.url) as running:
        yield running.client


@pytest.fixture(scope="module")
def changed(
    unpacked: Path, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """REST on a copy of the home in which tests queue runs that nobody trains."""
    home = tmp_path_factory.mktemp("golden-changed") / "home"
    shutil.copytree(unpacked, home)
    with service_on(home, redis_server.url) as running:
        yield running.client


@pytest.mark.parametrize("name", RUNS)
def test_stored_run_reads_as_it_was_recorded(read_only: httpx.Client, name: str) -> None:
    found = facts(read_only, runs_by_name(read_only)[name])
    assert_same(found, {key: its for key, its in RUNS[name].items() if key != "played"})


def test_charts_show_every_stored_point(read_only: httpx.Client) -> None:
    for name, run in runs_by_name(read_only).items():
        if name == UNFINISHED:
            continue
        wanted = points(read_only, run["id"])
        listed = read_only.get(f"/api/v1/runs/{run['id']}/series").json()["items"]
        assert {f"{s['metric']} {s['source']}".strip(): s["n_points"] for s in listed} == {
            key: len(its) for key, its in wanted.items()
        }
        found: dict[str, Any] = {}
        for source in {series["source"] for series in listed}:
            metrics = [series["metric"] for series in listed if series["source"] == source]
            asked = {"run": run["id"], "metric": metrics, "points": 10_000} | (
                {"source": source} if source else {}
            )
            chart = read_only.get("/api/v1/series", params=asked).json()["series"]
            found |= {f"{curve['metric']} {curve['source']}".strip(): curve for curve in chart}
        assert set(found) == set(wanted)
        for key, curve in found.items():
            assert curve["bucket_rows"] == 1
            assert curve["x"] == [row[0] for row in wanted[key]]
            assert curve["last"] == [pytest.approx(row[4]) for row in wanted[key]]


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_drawn_of_stored_runs(read_only: httpx.Client, name: str) -> None:
    run_id = runs_by_name(read_only)[name]["id"]
    curve = read_only.get("/api/v1/figures/learning_curve", params={"run": run_id, "data": True}).json()
    drawn = [trace for trace in curve["data"] if trace.get("meta", {}).get("run") == run_id]
    assert any(trace["x"] for trace in drawn)
    panels = read_only.get("/api/v1/figures/diagnostics", params={"run": run_id}).json()["items"]
    for panel in panels:
        asked = {"run": run_id, "panel": panel["id"], "data": True}
        figure = read_only.get("/api/v1/figures/diagnostic", params=asked).json()
        assert any(trace["x"] for trace in figure["data"]), panel["id"]
    for episode in items(read_only, f"/api/v1/runs/{run_id}/episodes"):
        figure = read_only.get("/api/v1/figures/episode_trace", params={"episode": episode["id"]}).json()
        assert any(trace["y"] for trace in figure["data"])


@pytest.mark.parametrize("name", RUNS)
def test_stored_run_exports_every_point(read_only: httpx.Client, name: str, tmp_path: Path) -> None:
    path = f"/api/v1/runs/{runs_by_name(read_only)[name]['id']}/export"
    wanted = points(read_only, path.split("/")[-2])
    table = pq.read_table(io.BytesIO(read_only.get(path, params={"format": "parquet"}).content))
    found: dict[str, list[Any]] = {}
    for metric, source, *row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found.setdefault(f"{metric} {source}".strip(), []).append(tuple(row))
    assert found == wanted
    with zipfile.ZipFile(
        io.BytesIO(read_only.get(path, params={"format": "tensorboard"}).content)
    ) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    if name in ("paac", "ga3c"):
        n_points: Counter[str] = Counter()
        for key, its in wanted.items():
            n_points[key.split(" ")[0]] += len(its)
        assert _tensorboard_points(tmp_path) == n_points


def _tensorboard_points(folder: Path) -> Counter[str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: Counter[str] = Counter()
    for part in sorted({path.parent for path in folder.rglob("*tfevents*")}):
        board = EventAccumulator(str(part), size_guidance={"scalars": 0})
        board.Reload()
        for tag in board.Tags()["scalars"]:
            found[tag] += len(board.Scalars(tag))
    return found


def test_stored_video_and_checkpoint_files_are_served(read_only: httpx.Client) -> None:
    n_videos = 0
    for name, run in runs_by_name(read_only).items():
        if name == UNFINISHED:
            continue
        for row in items(read_only, f"/api/v1/runs/{run['id']}/checkpoints"):
            assert len(read_only.get(f"/api/v1/checkpoints/{row['id']}/file").content) == row["size_bytes"]
        for episode in items(read_only, f"/api/v1/runs/{run['id']}/episodes"):
            if episode["video"] == "done":
                video = read_only.get(f"/api/v1/episodes/{episode['id']}/video")
                assert video.content[4:8] == b"ftyp"
                n_videos += 1
    assert n_videos == 1


@pytest.mark.parametrize("name", RUNS)
def test_stored_spec_starts_a_clone(
    changed: httpx.Client, stored: dict[str, dict[str, Any]], name: str
) -> None:
    shown = changed.get(f"/api/v1/runs/{stored[name]['id']}").json()["spec"]
    for spec in (shown, stored[name]["spec"]):  # by the current names and by those of 0.1.0
        clone = created_run(changed.post("/api/v1/runs", json=spec | {"name": "clone"}))
        assert clone["spec"] == with_new_fields(shown) | {"name": "clone"}


@pytest.mark.parametrize("name", RUNS)
def test_stored_run_forks_and_resumes(changed: httpx.Client, name: str) -> None:
    run = next(r for r in items(changed, "/api/v1/runs", archived="all") if r["name"] == name)
    stop = {"agent_steps": run["agent_steps"] + 100_000_000}
    fork = changed.post(f"/api/v1/runs/{run['id']}/fork", json={"stop": stop, "seed": 9, "name": "f"})
    assert fork.status_code == 201, fork.text
    assert fork.json()["forked_at_agent_steps"] == run["agent_steps"]
    assert fork.json()["spec"] == with_new_fields(run["spec"]) | {
        "stop": run["spec"]["stop"] | stop, "seed": 9, "name": "f"
    }  # fmt: skip
    [own] = items(changed, f"/api/v1/runs/{fork.json()['id']}/checkpoints")
    [newest] = items(changed, f"/api/v1/runs/{run['id']}/checkpoints")[-1:]
    copied, original = (changed.get(f"/api/v1/checkpoints/{row['id']}/file").content for row in (own, newest))
    assert copied == original
    resumed = changed.post(f"/api/v1/runs/{run['id']}/resume", json={"stop": stop})
    assert (resumed.status_code, resumed.json()["state"]) == (200, "queued")


@pytest.mark.parametrize("revision", ["0001", "0009", pytest.param(NEWEST, marks=pytest.mark.long)])
def test_upgraded_database_shows_its_runs(redis_server: RedisServer, revision: str, tmp_path: Path) -> None:
    databases = unpack("later" if revision == NEWEST else "databases", tmp_path / "databases")
    shutil.copyfile(databases / f"{revision}.sqlite3", tmp_path / "callboard.sqlite3")
    with service_on(tmp_path, redis_server.url) as running:
        found = runs_by_name(running.client)
        of_0_1_0 = {"paac", "fork", "live settings"}
        assert found.keys() - {"dqn on Atari", "external"} == of_0_1_0  # the custom one is deleted
        for name in of_0_1_0:
            run = found[name]
            series = {key: digest(its) for key, its in points(running.client, run["id"]).items()}
            assert_same(series, RUNS[name]["series"])
            assert run["agent_steps"] == RUNS[name]["agent_steps"]


def test_new_worker_continues_runs_of_an_old_home(unpacked: Path, tmp_path: Path) -> None:
    """The unfinished log is recorded exactly once; a stored run forks, and an episode is drawn."""
    home = tmp_path / "home"
    shutil.copytree(unpacked, home)
    # No lease may expire while the machine is busy: another attempt would begin.
    with installation(home, host_name=HOST, slots=2, lease_s=20, reconcile_interval_s=0.5) as up:
        client = up.log_in()
        runs = runs_by_name(client)
        unfinished = runs[UNFINISHED]["id"]
        stop = {"agent_steps": runs["dqn"]["agent_steps"] + 100}
        changes = {"stop": stop, "config": {"evaluation_episodes": 0}}
        fork = client.post(f"/api/v1/runs/{runs['dqn']['id']}/fork", json=changes).json()["id"]
        [episode] = items(client, f"/api/v1/runs/{runs['pong']['id']}/episodes")[:1]
        video = f"/api/v1/episodes/{episode['id']}/video"
        assert client.get(video).status_code == 202

        def read(run_id: str) -> dict[str, Any]:
            run: dict[str, Any] = client.get(f"/api/v1/runs/{run_id}").json()
            return run

        def goes_on() -> bool:
            run = read(unfinished)
            newest: int = UNFINISHED_LOG["checkpoints"][-1][1]
            return bool(run["attempt"] == 2 and run["agent_steps"] > newest + 50)

        def has_ended(run_id: str) -> bool:
            return str(read(run_id)["state"]) in ("finished", "stopped", "failed")

        until(goes_on, every_s=0.2)
        client.post(f"/api/v1/runs/{unfinished}/stop")
        for run_id, state in ((unfinished, "stopped"), (fork, "finished")):
            until(partial(has_ended, run_id), every_s=0.2)
            run = read(run_id)
            assert run["state"] == state, run["error"]
        until(lambda: client.get(video).status_code == 200, every_s=0.2)
        assert client.get(video).content[4:8] == b"ftyp"
        _assert_recorded_once(client, home, unfinished)
        assert read(fork)["agent_steps"] >= stop["agent_steps"]


def _assert_recorded_once(client: httpx.Client, home: Path, run_id: str) -> None:
    wanted = UNFINISHED_LOG
    newest = wanted["checkpoints"][-1][1]
    run = client.get(f"/api/v1/runs/{run_id}").json()
    assert [a["number"] for a in run["attempts"]] == [1, 2]
    assert run["attempts"][1]["resumed_from_agent_steps"] == newest
    found = points(client, run_id)
    before = {key: digest([row for row in its if row[0] <= newest]) for key, its in found.items()}
    for key, sums in wanted["series"].items():
        assert before[key] == pytest.approx(sums, rel=1e-9), key
    rows = items(client, f"/api/v1/runs/{run_id}/checkpoints", gone=True)
    assert [[row["file"], row["agent_steps"]] for row in rows if row["attempt"] == 1] == wanted["checkpoints"]
    assert len([row for row in rows if row["attempt"] == 2]) >= 1
    log = [line["message"] for line in items(client, f"/api/v1/runs/{run_id}/log")]
    assert sum("torn" in message for message in log) == 1
    with closing(sqlite3.connect(home / "callboard.sqlite3")) as database:
        superseded = database.execute(
            "SELECT metric, sum(n_rows) FROM series JOIN series_chunks ON series_id = series.id "
            "WHERE run_id = ? AND superseded GROUP BY series.id",
            [run_id],
        ).fetchall()
        [[recorded]] = database.execute(
            "SELECT log_offset_bytes FROM attempts WHERE run_id = ? AND number = 1", [run_id]
        ).fetchall()
    assert dict(superseded) == wanted["superseded"]
    assert recorded == wanted["whole_bytes"]
