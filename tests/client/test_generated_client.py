"""A client generated from the service's OpenAPI document launches, awaits and exports a run."""

import csv
import importlib
import io
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from backend.specs.events import PointsEvent
from tests.support.databases import short_folder
from tests.support.installation import Installation, installation
from tests.support.waiting import until
from workers.engine.training.event_log import read_frames

pytestmark = [pytest.mark.service, pytest.mark.long]

PACKAGE = "generated_callboard_client"
AGENT_STEPS = 4_000
Module = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    with short_folder() as folder, installation(folder / "home") as running:
        running.log_in()
        yield running


@pytest.fixture(scope="module")
def generator_output(running: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The generator's output; the generated package can be imported."""
    folder = tmp_path_factory.mktemp("client")
    document = folder / "openapi.json"
    document.write_bytes(running.client.get("/openapi.json").raise_for_status().content)
    settings = folder / "settings.yml"
    settings.write_text("post_hooks: []\n")
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("openapi-python-client"), "generate", "--meta", "none"),
            *("--path", document, "--output-path", folder / PACKAGE, "--config", settings),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield done.stdout + done.stderr
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def generated(generator_output: str) -> Module:
    return lambda name: importlib.import_module(f"{PACKAGE}.{name}")


@pytest.fixture
def client(running: Installation, generated: Module) -> Iterator[Any]:
    """The generated client with a token."""
    answer = running.client.post("/api/v1/tokens", json={"name": "a script"}).raise_for_status()
    token = answer.json()["token"]
    with generated("client").AuthenticatedClient(running.url, token=token) as client:
        yield client


def _columns(exported: bytes) -> dict[str, list[tuple[float, ...]]]:
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(exported.decode())):
        numbers = ("agent_steps", "frames", "wall_time_s", "episodes", "value")
        rows[row["metric"]].append(tuple(float(row[name]) for name in numbers))
    return rows


def _logged(home: Path, run_id: str) -> dict[str, list[tuple[float, ...]]]:
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for events, _ in read_frames(home / "runs" / run_id / "attempts" / "1" / "events.log"):
        for event in events:
            if isinstance(event, PointsEvent):
                columns = (event.agent_steps, event.frames, event.wall_time_s, event.episodes, event.value)
                rows[event.metric] += zip(*columns, strict=True)
    return rows


def test_client_covers_every_operation_but_files(generator_output: str) -> None:
    # The generator has no type for videos, images and archives: their responses are read from
    # `Response.content`. It sends points as JSON; it has no Arrow streams.
    assert {line for line in generator_output.splitlines() if "WARNING" in line} == {
        f"WARNING parsing {operation}."
        for operation in (
            "GET /api/v1/episodes/{episode_id}/observations within episodes",
            "GET /api/v1/episodes/{episode_id}/thumbnail within episodes",
            "GET /api/v1/episodes/{episode_id}/video within episodes",
            "GET /api/v1/recordings/{recording_id}/video within play",
            "GET /api/v1/studies/{study_id}/export within studies",
            "GET /api/v1/videos/{video_id}/file within episodes",
            "GET /api/v1/videos/{video_id}/thumbnail within episodes",
            "POST /api/v1/runs/{run_id}/points within runs",
        )
    }
    assert "Unable to parse" not in generator_output


def test_client_launches_awaits_and_exports_a_run(
    running: Installation, client: Any, generated: Module
) -> None:
    models = generated("models")
    request = models.RunFields(
        algorithm="paac",
        environment="CartPole-v1",
        stop=models.StopSpec(agent_steps=AGENT_STEPS),
        config=models.RunFieldsConfig.from_dict({"n_e": 4, "n_w": 1, "evaluation_episodes": 2}),
        seed=3,
        tags=["from a script"],
    )
    [created] = generated("api.runs.create_runs").sync(client=client, body=request).items
    assert (created.state, created.seed, created.tags) == (models.RunState.QUEUED, 3, ["from a script"])
    assert created.started_at is None

    def finished() -> Any:
        run = generated("api.runs.read_run").sync(created.id, client=client)
        assert run.state not in ("failed", "stopped"), run.state_reason
        return run if run.state == models.RunState.FINISHED else None

    run = until(finished, every_s=0.2)  # what is asked for takes its time from the engine
    assert AGENT_STEPS <= run.agent_steps < AGENT_STEPS + 100
    assert run.frames == run.agent_steps
    assert [move.after for move in run.transitions] == ["queued", "starting", "running", "finished"]

    series = {
        row.metric: row for row in generated("api.series.list_series").sync(run.id, client=client).items
    }
    answer = generated("api.series.export").sync_detailed(
        run.id, client=client, format_=models.ExportFormat.CSV
    )
    exported = _columns(answer.content)
    assert exported == _logged(running.home, run.id)
    assert {metric: len(rows) for metric, rows in exported.items()} == {
        metric: row.n_points for metric, row in series.items()
    }
    returns = [value for *_, value in exported["rollout/episode_return"]]
    lengths = [value for *_, value in exported["rollout/episode_length"]]
    # CartPole gives a reward of 1 per agent step.
    assert returns == lengths
    assert len(returns) == run.episodes
    assert 0.9 * run.agent_steps - 4 * 500 < sum(lengths) <= run.agent_steps
    assert max(returns) == run.best_return
    assert series["rollout/episode_return"].last_value == returns[-1]


def test_client_creates_a_run_for_each_seed(client: Any, generated: Module) -> None:
    models = generated("models")
    request = models.RunFields(
        algorithm="paac",
        environment="CartPole-v1",
        stop=models.StopSpec(agent_steps=AGENT_STEPS),
        host="no such host",
        seeds=[4, 5],
    )
    created = generated("api.runs.create_runs").sync(client=client, body=request)
    assert [run.seed for run in created.items] == [4, 5]


def test_client_returns_problem_documents(client: Any, generated: Module) -> None:
    models = generated("models")
    request = models.RunFields(algorithm="paac", environment="Nowhere-v0", stop=models.StopSpec())
    problem = generated("api.runs.create_runs").sync(client=client, body=request)
    assert isinstance(problem, models.ProblemDocument)
    assert {"environment", "stop"} <= {error.field for error in problem.errors}
    missing = generated("api.runs.read_run").sync("0" * 26, client=client)
    assert (missing.status, missing.title) == (404, "Not Found")
