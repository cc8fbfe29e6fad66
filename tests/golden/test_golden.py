"""A golden home is read, exported and resumed: the committed one or, until there is one, a generated one."""

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from backend.db.migrate import check, upgrade
from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import AnyEvent, PointsEvent, ReportEvent, StartedEvent
from backend.specs.run import parse_run_spec
from tests.golden.generate import ARCHIVE, MAX_ARCHIVE_BYTES, events_of, generate, pack, train, unpack
from tests.support.redis_server import RedisServer
from tests.support.service import running_service

pytestmark = [pytest.mark.service, pytest.mark.long]


@dataclass(frozen=True)
class GoldenHome:
    """A golden home, which tests only read."""

    path: Path
    ids: dict[str, str]
    """Algorithm -> run id."""

    def run_dir(self, algorithm: str) -> Path:
        """The run directory of an algorithm's run."""
        return self.path / "runs" / self.ids[algorithm]

    def checkpoint(self, algorithm: str) -> Path:
        """The newest checkpoint of an algorithm's run."""
        return max((self.path / "artifacts" / "runs" / self.ids[algorithm] / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> GoldenHome:
    folder = tmp_path_factory.mktemp("golden")
    archive = ARCHIVE
    if not archive.exists():
        archive = folder / ARCHIVE.name
        pack(folder / "generated", generate(folder / "generated"), archive)
    assert archive.stat().st_size <= MAX_ARCHIVE_BYTES
    return GoldenHome(folder / "home", unpack(archive, folder / "home"))


@pytest.fixture(scope="module")
def client(
    home: GoldenHome, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """REST on a copy of the home; no worker."""
    copy = tmp_path_factory.mktemp("golden-service") / "home"
    shutil.copytree(home.path, copy)
    url = f"sqlite:///{copy / 'callboard.sqlite3'}"
    upgrade(url)
    check(url)
    with running_service(url, redis_server.url, copy) as service:
        yield service.client


def _n_points(events: list[AnyEvent]) -> Counter[tuple[str, str]]:
    """Number of points by metric and source."""
    n_points: Counter[tuple[str, str]] = Counter()
    for event in events:
        if isinstance(event, PointsEvent):
            n_points[event.metric, event.source] += len(event.value)
    return n_points


def test_home_holds_a_run_of_each_algorithm(home: GoldenHome, client: httpx.Client) -> None:
    # A home of an earlier version lacks the algorithms that are newer.
    assert home.ids.keys() <= ALGORITHMS.keys()
    runs = {run["id"]: run for run in client.get("/api/v1/runs").json()["items"]}
    assert runs.keys() == set(home.ids.values())
    for algorithm, run_id in home.ids.items():
        run, stored = runs[run_id], json.loads((home.run_dir(algorithm) / "spec.json").read_text())
        assert (run["algorithm"], run["state"], run["tags"]) == (algorithm, "finished", ["golden"])
        assert stored.items() <= parse_run_spec(stored).model_dump(mode="json").items()


def test_event_logs_and_exports_hold_the_same_points(home: GoldenHome, client: httpx.Client) -> None:
    for algorithm, run_id in home.ids.items():
        logged = _n_points(events_of(home.run_dir(algorithm), 1))
        assert logged["rollout/episode_return", ""] > 0, algorithm
        path = f"/api/v1/runs/{run_id}/export"
        text = client.get(path, params={"format": "csv"}).text
        rows = [(row["metric"], row["source"]) for row in csv.DictReader(io.StringIO(text))]
        assert Counter(rows) == logged, algorithm
        table = pq.read_table(io.BytesIO(client.get(path, params={"format": "parquet"}).content))
        columns = (table.column(name).to_pylist() for name in ("metric", "source"))
        assert Counter(zip(*columns, strict=True)) == logged, algorithm


def test_files_are_served_as_they_were_recorded(home: GoldenHome, client: httpx.Client) -> None:
    for algorithm, run_id in home.ids.items():
        (row,) = client.get(f"/api/v1/runs/{run_id}/checkpoints").json()["items"]
        content = client.get(f"/api/v1/checkpoints/{row['id']}/file").content
        assert content == home.checkpoint(algorithm).read_bytes(), algorithm
        evaluations = client.get(f"/api/v1/runs/{run_id}/evaluations").json()["items"]
        # Methods that keep their best parameters score them once more at the end.
        assert {len(evaluation["returns"]) for evaluation in evaluations} == {2}, algorithm
        episodes = client.get(f"/api/v1/runs/{run_id}/episodes").json()["items"]
        assert episodes, algorithm
        for episode in episodes:
            trace = client.get(f"/api/v1/episodes/{episode['id']}/trace")
            assert trace.status_code == 200, trace.text


def test_runs_fork_and_resume_over_rest(home: GoldenHome, client: httpx.Client) -> None:
    for run_id in home.ids.values():
        run = client.get(f"/api/v1/runs/{run_id}").json()
        stop: dict[str, Any] = {"agent_steps": 10_000}
        fork = client.post(f"/api/v1/runs/{run_id}/fork", json={"stop": stop, "seed": 9})
        assert fork.status_code == 201, fork.text
        assert fork.json()["forked_at_agent_steps"] == run["agent_steps"]
        resumed = client.post(f"/api/v1/runs/{run_id}/resume", json={"stop": stop})
        assert (resumed.status_code, resumed.json()["state"]) == (200, "queued")


def test_every_checkpoint_resumes(home: GoldenHome, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for algorithm in home.ids:
        with subtests.test(algorithm=algorithm):
            run_dir = tmp_path / algorithm
            shutil.copytree(home.run_dir(algorithm), run_dir)
            (run_dir / "checkpoints").mkdir(exist_ok=True)
            file = shutil.copy(home.checkpoint(algorithm), run_dir / "checkpoints")
            *_, before = (e for e in events_of(run_dir, 1) if isinstance(e, ReportEvent))
            stored = json.loads((run_dir / "spec.json").read_text())
            # Far enough for trainers on a busy machine to have updated: actors do not wait for them.
            bound = {"agent_steps": before.agent_steps + 1_000}
            train(parse_run_spec(stored | {"stop": bound}), run_dir, attempt=2)
            events = events_of(run_dir, 2)
            (started,) = (event for event in events if isinstance(event, StartedEvent))
            assert (started.resumed_from, started.agent_steps) == (Path(file).name, before.agent_steps)
            *_, after = (event for event in events if isinstance(event, ReportEvent))
            assert after.agent_steps >= bound["agent_steps"]
            assert after.updates > before.updates
            assert after.frames > before.frames
            steps = [step for e in events if isinstance(e, PointsEvent) for step in e.agent_steps]
            # While processes start, metrics may be logged before any agent step.
            assert min(steps) >= before.agent_steps
