"""An engine that is stopped while it starts: it ends within 10 s, and all that it started with it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments.custom import FILE_VARIABLE, read_custom_environments
from backend.specs.events import EndedEvent, StartingEvent
from tests.support import custom_environment
from tests.support.engine_process import await_event, await_stop, logged
from tests.support.waiting import PATIENCE_S
from tests.workers.engine.training.training_runs import only
from workers.engine.processes.phases import COMPILING
from workers.engine.training import checkpoint

pytestmark = pytest.mark.long

SMALL = {
    "n_e": 2,
    "n_w": 2,
    "n_actors": 2,
    "n_learners": 2,
    "replay_capacity": 5_000,
    "evaluation_episodes": 0,
}


class Case(NamedTuple):
    """A phase of a start, and where the environment hangs so that the phase does not end by itself."""

    algorithm: str
    phase: str
    hangs: str = ""
    config: dict[str, Any] = {}  # noqa: RUF012  # never changed


CASES = [
    Case("paac", "importing packages"),
    Case("paac", "building environments and network", hangs="engine"),
    Case("paac", "compiling kernels"),
    Case("paac", "starting 1 of 2 rollout workers", hangs="child"),
    Case("paac", "restoring", hangs="reset"),
    Case("ga3c", "starting 2 agents", hangs="child"),
    Case("n_step_q", "importing packages and compiling kernels"),
    Case("n_step_q", "starting 2 of 2 processes", hangs="child"),
    Case("dqn", "restoring", hangs="reset"),
    Case("gorila_dqn", "starting Ray"),
    Case("gorila_dqn", "starting 1 of 6 processes", config={"parts_per_process": 1, "n_shards": 4}),
]


def prepared(run_dir: Path, case: Case, *, hangs: str, agent_steps: int) -> None:
    """Write the spec of a run in the environment that hangs there."""
    file = custom_environment.write(run_dir, custom_environment.HANGING.format(where=hangs))
    entry = read_custom_environments(file)["Custom/Hanging-v0"]
    fields = ALGORITHMS[case.algorithm].config.model_fields
    spec = {
        "algorithm": case.algorithm,
        "environment": entry.id,
        "custom": entry.describe().model_dump(mode="json"),
        "stop": {"agent_steps": agent_steps},
        "config": {name: value for name, value in SMALL.items() if name in fields} | case.config,
    }
    (run_dir / "spec.json").write_text(json.dumps(spec))


def engine_of(run_dir: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(run_dir), *more])


def trained(folder: Path, case: Case) -> Path:
    """The newest checkpoint of a run in the environment that does not hang."""
    folder.mkdir()
    prepared(folder, case, hangs="", agent_steps=500)
    assert engine_of(folder).wait(timeout=PATIENCE_S) == 0
    newest = checkpoint.newest(folder / "checkpoints")
    assert newest is not None
    return folder / "checkpoints" / newest


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.algorithm}-{case.phase}")
def test_signal_ends_a_start_in_each_of_its_phases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    resume: list[str] = []
    if case.phase == "restoring":
        monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "trained" / "environments.toml"))
        kept = trained(tmp_path / "trained", case)
        (tmp_path / "checkpoints").mkdir()
        resume = ["--resume", kept.rename(tmp_path / "checkpoints" / kept.name).name]
    if COMPILING in case.phase:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))  # it takes seconds
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "environments.toml"))
    prepared(tmp_path, case, hangs=case.hangs, agent_steps=10**9)
    with engine_of(tmp_path, *resume) as engine:
        try:
            await_event(engine, tmp_path, StartingEvent, case.phase)
            parts = psutil.Process(engine.pid).children(recursive=True)
            engine.send_signal(signal.SIGTERM)
            status = await_stop(engine)
        finally:
            engine.kill()
    events = logged(tmp_path)
    assert only(StartingEvent, events)[-1].phase.startswith(case.phase)
    if case.phase == "importing packages" and status == -signal.SIGTERM:
        assert not only(EndedEvent, events)  # it handles signals only after the imports
    else:
        assert status == 0
        [ended] = only(EndedEvent, events)
        assert (ended.state, ended.reason) == ("stopped", "stopped by SIGTERM while it was starting")
    assert psutil.wait_procs(parts, timeout=PATIENCE_S)[1] == []
    assert not list(Path("/tmp").glob(f"callboard-ray-{engine.pid}-*"))
