"""How often a run's spec is parsed on its way from a request to the learner."""

import sys
from pathlib import Path
from typing import Any

import pytest

from backend.coordination.context import Context
from backend.specs.events import EndedEvent
from backend.specs.run import RunSpec
from backend.specs.states import RunState
from tests.support.engine_process import logged
from tests.support.rows import add_host, make_checkpoint, make_run
from tests.support.service import RunningService, created_run
from tests.workers.engine.training.training_runs import only
from tests.workers.support import claim
from workers import resume
from workers.engine import commands as engine_process
from workers.engine.nn import devices
from workers.engine.training.control import Control

pytestmark = pytest.mark.service  # Redis

SMALL_RUN: dict[str, Any] = {
    "algorithm": "paac",
    "environment": "CartPole-v1",
    "config": {"n_e": 2, "n_w": 1, "evaluation_episodes": 0},
    "stop": {"agent_steps": 20},
}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The algorithm of each spec that this process parses."""
    parsed: list[str] = []
    validate = RunSpec.model_validate

    def count(data: dict[str, Any]) -> RunSpec:
        spec = validate(data)
        parsed.append(spec.algorithm)
        return spec

    monkeypatch.setattr(RunSpec, "model_validate", count)
    return parsed


def train(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the engine's `main` in this process, without what would change the process."""
    monkeypatch.setattr(engine_process, "die_with_parent", lambda parent: None)
    monkeypatch.setattr(devices, "prepare_torch", lambda: None)
    monkeypatch.setattr(Control, "handle_signals", lambda control: None)
    monkeypatch.setattr(sys, "argv", ["engine", "train", str(run_dir)])
    assert engine_process.main() == 0


def test_spec_is_parsed_three_times_from_the_request_to_the_end_of_training(
    sqlite_service: RunningService, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = created_run(sqlite_service.client.post("/api/v1/runs", json=SMALL_RUN))
    assert len(parsed) == 1, "by the request"
    context = Context.from_settings(sqlite_service.settings)
    try:
        add_host(context.db_engine, "a")
        taken = claim(context.db_engine)
        assert taken is not None
        resume.prepare(context, taken)
        assert len(parsed) == 2, "by the worker, which writes spec.json"
        run_dir = context.run_dir(run["id"])
        train(run_dir, monkeypatch)
    finally:
        context.close()
    [ended] = only(EndedEvent, logged(run_dir))
    assert ended.state == "finished"
    assert parsed == 3 * ["paac"], "by the engine, which reads it"


def test_fork_parses_its_parent_and_itself_once_each(
    sqlite_service: RunningService, parsed: list[str], tmp_path: Path
) -> None:
    parent = make_run(sqlite_service.engine, RunState.STOPPED)
    checkpoint = make_checkpoint(sqlite_service.engine, parent, 100)
    (tmp_path / checkpoint.file).write_bytes(b"weights")
    sqlite_service.artifacts.put(tmp_path / checkpoint.file, parent.id, "checkpoints")
    parsed.clear()
    body = {"config": {"beta": 0.5}}
    answer = sqlite_service.client.post(f"/api/v1/runs/{parent.id}/fork", json=body)
    assert answer.status_code == 201, answer.text
    assert len(parsed) == 2
