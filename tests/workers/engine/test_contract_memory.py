"""The memory estimate of every algorithm against the measured peak: in `make test-long`, and by hand for
continuous actions."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import EvaluationEvent, ReportEvent
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.engine_process import logged
from tests.support.memory import PeakMemory
from tests.support.waiting import PATIENCE_S, rounds, until
from tests.workers.engine.training.training_runs import only
from workers import engine_server
from workers.engine_process import EngineProcess
from workers.engine_server import EngineServer

MOST_PROCESSES = 40
"""An algorithm with more by default is measured with its preset for small machines."""
MEASURED_S = 3 * PATIENCE_S


def _measured() -> Iterator[Any]:
    long = partial(pytest.param, marks=pytest.mark.long)
    by_hand = partial(pytest.param, marks=pytest.mark.benchmark)
    for name, algorithm in ALGORITHMS.items():
        yield long(name, "CartPole-v1", {}, id=f"{name}-CartPole-v1")
        yield long(name, "ALE/Pong-v5", {}, id=f"{name}-ALE/Pong-v5")
        if "continuous" in algorithm.actions:
            # Its peak depends on how many actor-learners update by a whole episode at the same time: 1,853 to
            # 2,895 MiB were measured. The estimate is above the largest, so over 1.5 times the smallest.
            yield by_hand(name, "HalfCheetah-v5", {}, id=f"{name}-HalfCheetah-v5")
        if "replay_capacity" in algorithm.config.model_fields:
            small = {"replay_capacity": 2_000}
            yield long(name, "CartPole-v1", small, id=f"{name}-CartPole-v1-small-replay")
            yield long(name, "ALE/Pong-v5", small, id=f"{name}-ALE/Pong-v5-small-replay")


def default_spec(algorithm: str, environment: str, config: dict[str, Any]) -> RunSpec:
    """The defaults, or the preset for small machines where they have more processes than this one can start;
    a replay memory is filled, and learning starts early; every actor-learner that learns from whole episodes
    ends one. The evaluation is short."""
    request: dict[str, Any] = {"algorithm": algorithm, "environment": environment, "device": "cpu"}
    request["stop"] = {"agent_steps": 2_000}
    spec = parse_run_spec(request)
    if spec.config.env_processes > MOST_PROCESSES:
        suiting = [
            preset for preset in ALGORITHMS[algorithm].presets if preset.suits(spec.catalogue_environment)
        ]
        [preset] = [preset for preset in suiting if preset.id == "two-cpu-cores"]
        request["config"] = preset.config
    if "replay_capacity" in type(spec.config).model_fields:
        request["stop"] = {"agent_steps": 20_000}
        config = {"learning_starts_agent_steps": 500, "agent_steps_per_update": 500} | config
    elif getattr(spec.config, "t_max", None) == 0:
        request["stop"] = {"agent_steps": 4_100 * spec.config.env_processes}
    config = {"evaluation_episodes": 4} | config
    return parse_run_spec(request | {"config": request.get("config", {}) | config})


@pytest.mark.parametrize(("algorithm", "environment", "config"), list(_measured()))
def test_memory_estimate_is_the_measured_peak_and_up_to_half_more(
    algorithm: str,
    environment: str,
    config: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))  # a first run compiles kernels
    loads = engine_server.loads_now()
    monkeypatch.setattr(engine_server, "loads_now", lambda: loads)  # pytest changes variables all the time
    spec = default_spec(algorithm, environment, config)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    server = EngineServer()
    until(lambda: server.is_ready(0.1))
    assert server.pid is not None
    engine = EngineProcess(["train", str(tmp_path)], output=tmp_path / "output.log", fork=server.fork)
    peak = PeakMemory(server.pid, engine.pid)
    for _ in rounds(MEASURED_S):
        peak.sample()
        if engine.has_exited():
            break
        engine.wait_for_exit(0.1)
    assert engine.reap() == 0, engine.output_tail()
    server.stop()
    reports = only(ReportEvent, logged(tmp_path))
    assert bool(reports[-1].updates) == ALGORITHMS[algorithm].learns
    assert only(EvaluationEvent, logged(tmp_path))
    estimate = spec.memory_estimate_bytes
    with capsys.disabled():
        mib = f"{peak.bytes / 2**20:.0f} MiB, estimated {estimate / 2**20:.0f}"
        print(f"\n{algorithm} on {environment} {config or ''}: {mib}")  # noqa: T201
    assert peak.bytes <= estimate <= 1.5 * peak.bytes
