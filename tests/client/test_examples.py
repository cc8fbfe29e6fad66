"""The scripts of the folder `examples`, and the steps of its GitHub Actions workflow, run as printed."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import callboard
from backend.coordination.context import Context
from tests.client.support import Target
from tests.support.waiting import await_worker_threads
from tests.workers.support import FAKE_ENGINE
from workers.host_agent import HostAgent

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def worker(target: Target) -> Iterator[None]:
    """A host that trains with the fake engine."""
    settings = target.service.settings.model_copy(update={"reconcile_interval_s": 0.2, "host_name": "a"})
    context = Context.from_settings(settings)
    agent = HostAgent(context, command=FAKE_ENGINE)
    agent.start()
    yield
    agent.stop(8)
    await_worker_threads()
    context.close()


def run(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def environment(**more: str) -> dict[str, str]:
    """Of a script that imports the client of this checkout, with `python` of these tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    paths = [str(ROOT / "client"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"} | more


def log(tag: str, seed: int, score: float) -> None:
    with callboard.init(algorithm="a", environment="e", seed=seed, tags=[tag]) as run:
        for step in range(1, 5):
            run.episode(score, 10, agent_steps=10 * step)


def log_baseline(like: dict[str, Any], seed: int, score: float) -> None:
    """Log a run of other code than a run's, with this score at as many agent steps."""
    config = like["spec"]["config"] | {"code": "baseline"}
    settings = {"algorithm": like["algorithm"], "environment": like["environment"], "config": config}
    with callboard.init(seed=seed, tags=["baseline"], **settings) as run:
        for step in range(1, 301):
            run.episode(score, 1, agent_steps=step)


@pytest.mark.long
def test_nightly_sweep_trains_every_learning_rate_with_every_seed(target: Target, worker: None) -> None:
    rates = ["--learning-rates", "0.001", "0.01", "--seeds", "2", "--agent-steps", "10"]
    done = run("nightly_sweep.py", *rates)
    assert (done.returncode, done.stderr) == (0, "")
    runs = target.runs()
    assert [run["state"] for run in runs] == ["finished"] * 4
    assert sorted((run["spec"]["config"]["learning_rate"], run["seed"]) for run in runs) == [
        (0.001, 0), (0.001, 1), (0.01, 0), (0.01, 1),
    ]  # fmt: skip
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["0.001", "0.01"]


@pytest.mark.long
def test_steps_of_the_workflow_train_and_fail_when_the_score_has_regressed(
    target: Target, tmp_path: Path
) -> None:
    workflow = yaml.safe_load((EXAMPLES / "score-regression.yml").read_text("utf-8"))
    assert workflow["jobs"]["score"]["env"]["TAG"] == "${{ github.event.pull_request.head.sha }}"
    steps = [step["run"] for step in workflow["jobs"]["score"]["steps"] if "run" in step]
    train, check = [step for step in steps if step.startswith("python ")]
    assert [step for step in steps if step not in (train, check)] == [
        'pip install "callboard-client @ git+$REPOSITORY#subdirectory=client" stable-baselines3'
    ]
    for script in ("train.py", "check_score.py"):
        shutil.copy(EXAMPLES / script, tmp_path)

    def step(command: str) -> "subprocess.CompletedProcess[str]":
        env = environment(TAG="0a1b2c", AGENT_STEPS="300")
        return subprocess.run(
            ["bash", "-ec", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    assert "no finished run with the tag baseline" in step(check.replace("$TAG", "baseline")).stderr
    trained = step(train)
    assert trained.returncode == 0, trained.stderr
    runs = target.runs()
    assert {(run["seed"], run["state"], *run["tags"]) for run in runs} == {
        (seed, "finished", "0a1b2c") for seed in range(5)
    }
    [new] = {json.dumps(run["spec"]["config"]) for run in runs}
    assert json.loads(new)["code"] == "0a1b2c"
    scores = [run["score"] for run in runs]
    for seed in range(2):
        log_baseline(runs[0], seed, scores[seed])
    undecided = step(check)
    assert (undecided.returncode, undecided.stdout.count("not decided")) == (1, 1)
    assert "too few seeds for a verdict" in undecided.stderr
    for seed in range(2, 5):
        log_baseline(runs[0], seed, scores[seed])
    passed = step(check)
    assert passed.returncode == 0, passed.stderr
    with callboard.connect() as client:
        client.runs("tag:baseline").delete()
    for seed in range(5):
        log_baseline(runs[0], seed, max(scores) + 10.0)
    regressed = step(check)
    assert regressed.returncode == 1
    assert "the score has regressed" in regressed.stderr


def test_all_series_are_read(target: Target) -> None:
    for seed in range(3):
        log("mine", seed, 10.0 * seed)
    log("other", 0, 99.0)
    done = run("read_series.py", "tag:mine")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 runs, 12 points of rollout/episode_return" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["40", "10.0"], "the mean of 0, 10 and 20"
    assert run("read_series.py", "tag:none").stdout == "0 runs, 0 points of rollout/episode_return\n"


def test_first_examples_of_the_guide_run_as_printed(target: Target) -> None:
    text = (ROOT / "docs/guides/log.md").read_text("utf-8")
    for heading in ("Log a run", "TensorBoard scripts"):
        [block] = re.findall(rf"^## {heading}\n.*?```python\n(.*?)```", text, re.M | re.S)
        exec(block, {})
    tensorboard, first = target.runs()
    assert (first["name"], first["state"], first["best_return"]) == ("first try", "finished", 500.0)
    assert len(target.points(first["id"])["loss/policy"]) == 10_000
    assert (tensorboard["algorithm"], tensorboard["environment"]) == ("ppo", "CartPole-v1")
    assert (tensorboard["state"], tensorboard["best_return"]) == ("finished", 200.0)
