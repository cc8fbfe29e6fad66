"""The demo run: finished, openable, and left out of everything unless it is chosen."""

from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from structlog.testing import capture_logs

from backend.coordination.context import Context
from backend.db.engine import reading
from backend.experiments.experiments import repository as experiments
from backend.fleet.hosts import repository as hosts
from backend.runs.runs import repository as runs
from backend.runs.runs.conditions import labels
from backend.specs.states import RunState
from callboard_cli import demo
from tests.campaigns.demo.__main__ import best_start
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

RUN = f"/api/v1/runs/{demo.DEMO_RUN}"
MAX_BYTES = 10**6


@pytest.fixture
def client(sqlite_service: RunningService) -> httpx.Client:
    demo.add_demo_run(sqlite_service.settings)
    return sqlite_service.client


def listed(client: httpx.Client, **params: Any) -> list[str]:
    answer = client.get("/api/v1/runs", params=params)
    assert answer.is_success, answer.text
    return [run["id"] for run in answer.json()["items"]]


def test_demo_run_is_finished_with_curve_replays_and_videos(client: httpx.Client) -> None:
    run = client.get(RUN).json()
    assert (run["state"], run["demo"], run["score"]) == ("finished", True, 500.0)
    episodes = client.get(f"{RUN}/episodes", params={"sort": "agent_steps"}).json()["items"]
    assert len(episodes) == 4
    assert episodes[0]["episode_return"] < 50 < episodes[-1]["episode_return"]
    for episode in episodes:
        address = f"/api/v1/episodes/{episode['id']}"
        video = client.get(f"{address}/video")
        assert (video.status_code, video.headers["content-type"]) == (200, "video/mp4")
        trace = client.get(f"{address}/trace").json()
        assert len(trace["rewards"]) == episode["length_steps"]
        # By CartPole's limit: without it the return of what followed would be 0, and V seem wrong.
        assert trace["truncated"] == (episode["length_steps"] == 500)
        assert not episode["observations"]  # of vectors there is no video
    assert client.get(f"{RUN}/checkpoints").json()["items"] == []
    assert "rollout/episode_return" in {
        item["metric"] for item in client.get(f"{RUN}/series").json()["items"]
    }


def test_first_start_adds_the_demo_run_without_a_warning_before_redis_runs(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    settings = sqlite_service.settings.model_copy(update={"redis_url": f"unix://{tmp_path}/none.sock"})
    with capture_logs() as entries:
        demo.add_demo_run(settings)
    assert sqlite_service.client.get(RUN).is_success
    assert [entry for entry in entries if entry["log_level"] != "info"] == []


def test_lists_and_groups_have_the_demo_run_only_where_it_is_chosen(client: httpx.Client) -> None:
    assert listed(client, archived="all") == listed(client, filter="score>0") == []
    assert listed(client, filter="demo:true") == listed(client, id=demo.DEMO_RUN) == [demo.DEMO_RUN]
    groups = client.get("/api/v1/comparisons/groups", params={"by": "seed"}).json()
    assert groups["items"] == []
    bulk = {"action": "archive", "filter": "state:finished", "dry_run": True}
    assert client.post("/api/v1/runs/bulk", json=bulk).json()["items"] == []


def test_counts_rates_labels_and_studies_leave_the_demo_run_out(
    client: httpx.Client, sqlite_service: RunningService
) -> None:
    kind = ("paac", "CartPole-v1")
    with reading(sqlite_service.engine) as session:
        assert runs.count_by_state(session)[RunState.FINISHED] == 0
        assert hosts.recent_rates(session, [kind]) == {}
        assert labels(session) == {"group": [], "project": [], "tag": []}
        assert experiments.finished_runs(session, [(*kind, 0)]) == {}


def test_demo_run_without_a_checkpoint_is_not_resumed(client: httpx.Client) -> None:
    refused = client.post(f"{RUN}/resume", json={"stop": {"agent_steps": 10**6}})
    assert refused.status_code == 409
    assert "clone it" in refused.json()["detail"]
    assert client.get(RUN).json()["state"] == "finished"
    assert len(client.get(f"{RUN}/episodes").json()["items"]) == 4


@pytest.mark.parametrize("restorable", [True, False])
def test_deleted_demo_run_stays_deleted(
    client: httpx.Client, sqlite_service: RunningService, restorable: bool
) -> None:
    assert client.delete(RUN, params={"restorable": restorable}).is_success
    demo.add_demo_run(sqlite_service.settings)
    assert client.get(RUN).status_code == 404


def test_home_with_a_run_gets_no_demo_run(sqlite_service: RunningService) -> None:
    make_run(sqlite_service.engine, RunState.FINISHED)
    demo.add_demo_run(sqlite_service.settings)
    assert sqlite_service.client.get(RUN).status_code == 404


def test_next_start_completes_a_demo_run_that_a_killed_one_began(sqlite_service: RunningService) -> None:
    with closing(Context.from_settings(sqlite_service.settings)) as context:
        assert demo.begin(context)
    demo.add_demo_run(sqlite_service.settings)
    demo.add_demo_run(sqlite_service.settings)
    run = sqlite_service.client.get(RUN).json()
    assert (run["state"], run["attempt"]) == ("finished", 1)
    assert len(sqlite_service.client.get(f"{RUN}/episodes").json()["items"]) == 4


def test_files_are_small_and_name_no_folder_of_the_machine_that_made_them() -> None:
    files = [path for path in demo.FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES
    assert len([path for path in files if path.suffix == ".mp4"]) == 4
    assert {path.suffix for path in files} == {".json", ".log", ".mp4", ".npz"}
    log = (demo.FOLDER / "attempts" / "1" / "events.log").read_bytes()
    assert b"/tmp" not in log
    assert b"/work" not in log
    assert b"/home" not in log


def test_clip_starts_where_most_reward_is_and_else_in_the_middle() -> None:
    assert best_start(np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]), 2) == 2
    assert best_start(np.ones(9), 3) == 3
    assert best_start(np.ones(3), 3) == 0
