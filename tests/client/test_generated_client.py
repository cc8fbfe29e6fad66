"""A client generated from the service's own document does what a script wants: launch, wait, export."""

import csv
import importlib
import io
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from types import ModuleType
from typing import Any

import pytest

from backend.specs.events import Points
from tests.support.databases import short_folder
from tests.support.installation import Installation, installation
from tests.workers.support import until
from workers.engine.event_log import read_frames

pytestmark = pytest.mark.service

PACKAGE = "generated_callboard_client"
AGENT_STEPS = 4_000
Module = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    with short_folder() as folder, installation(folder / "home") as running:
        running.log_in()
        yield running


@pytest.fixture(scope="module")
def said(running: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the generator printed; the package can be imported."""
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
def generated(said: str) -> Module:
    return lambda name: importlib.import_module(f"{PACKAGE}.{name}")


@pytest.fixture
def client(running: Installation, generated: Module) -> Iterator[Any]:
    """The generated client with a token, as a script has it."""
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
            if isinstance(event, Points):
                columns = (event.agent_steps, event.frames, event.wall_time_s, event.episodes, event.value)
                rows[event.metric] += zip(*columns, strict=True)
    return rows


def test_nothing_is_left_out_of_the_client(said: str) -> None:
    # The generator knows no videos: the answers of these two paths are left to `Response.content`.
    assert {line for line in said.splitlines() if "WARNING" in line} == {
        f"WARNING parsing GET /api/v1/episodes/{{episode_id}}/{video} within episodes."
        for video in ("video", "observations")
    }
    assert "Unable to parse" not in said


def test_it_launches_waits_for_and_exports_a_run(
    running: Installation, client: Any, generated: Module
) -> None:
    models = generated("models")
    request = models.RunFields(
        algorithm="paac",
        environment="CartPole-v1",
        stop=models.StopSpec(agent_steps=AGENT_STEPS),
        config=models.RunFieldsConfig.from_dict({"n_e": 4, "evaluation_episodes": 2}),
        seed=3,
        tags=["from a script"],
    )
    made = generated("api.runs.create_runs").sync(client=client, body=request)
    assert (made.state, made.seed, made.tags) == (models.RunState.QUEUED, 3, ["from a script"])
    assert made.started_at is None

    def finished() -> Any:
        run = generated("api.runs.read_run").sync(made.id, client=client)
        assert run.state not in ("failed", "stopped"), run.state_reason
        sleep(0.2)  # what it asks for takes its time from the engine
        return run if run.state == models.RunState.FINISHED else None

    run = until(finished, timeout_s=200)
    assert AGENT_STEPS <= run.agent_steps < AGENT_STEPS + 100
    assert run.frames == run.agent_steps
    assert [move.after for move in run.transitions] == ["queued", "starting", "running", "finished"]

    series = {
        one.metric: one for one in generated("api.series.list_series").sync(run.id, client=client).items
    }
    answer = generated("api.series.export").sync_detailed(
        run.id, client=client, format_=models.ExportFormat.CSV
    )
    exported = _columns(answer.content)
    assert exported == _logged(running.home, run.id)
    assert {metric: len(rows) for metric, rows in exported.items()} == {
        metric: one.n_points for metric, one in series.items()
    }
    returns = [value for *_, value in exported["rollout/episode_return"]]
    lengths = [value for *_, value in exported["rollout/episode_length"]]
    # CartPole pays 1 an agent step.
    assert returns == lengths
    assert len(returns) == run.episodes
    assert 0.9 * run.agent_steps - 4 * 500 < sum(lengths) <= run.agent_steps
    assert max(returns) == run.best_return
    assert series["rollout/episode_return"].last_value == returns[-1]


def test_it_is_told_what_is_wrong(client: Any, generated: Module) -> None:
    models = generated("models")
    request = models.RunFields(algorithm="paac", environment="Nowhere-v0", stop=models.StopSpec())
    problem = generated("api.runs.create_runs").sync(client=client, body=request)
    assert isinstance(problem, models.ProblemDocument)
    assert {"environment", "stop"} <= {error.field for error in problem.errors}
    missing = generated("api.runs.read_run").sync("0" * 26, client=client)
    assert (missing.status, missing.title) == (404, "Not Found")
