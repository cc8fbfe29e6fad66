"""The memory estimate of every algorithm against the measured peak, by hand."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import ReportEvent
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.engine_process import logged
from tests.support.memory import PeakMemory
from tests.support.waiting import PATIENCE_S, rounds
from tests.workers.engine.training.training_runs import only

MOST_PROCESSES = 40
"""An algorithm with more by default is measured with its preset for small machines."""
EVALUATION_SAMPLES = 15
"""Samples of the memory while an evaluation runs."""


def _measured() -> Iterator[Any]:
    """By hand: peaks differ by a fifth between an idle machine and one that runs other tests."""
    by_hand = pytest.mark.benchmark
    for name, algorithm in ALGORITHMS.items():
        yield pytest.param(name, "CartPole-v1", {}, id=f"{name}-CartPole-v1", marks=by_hand)
        yield pytest.param(name, "ALE/Pong-v5", {}, id=f"{name}-ALE/Pong-v5", marks=by_hand)
        if "continuous" in algorithm.actions:
            yield pytest.param(name, "HalfCheetah-v5", {}, id=f"{name}-HalfCheetah-v5", marks=by_hand)
        if "replay_capacity" in algorithm.config.model_fields:
            small_replay = {"replay_capacity": 2_000}
            yield pytest.param(name, "ALE/Pong-v5", small_replay, id=f"{name}-small-replay", marks=by_hand)


def default_spec(algorithm: str, environment: str, config: dict[str, Any]) -> RunSpec:
    """The defaults, or the preset for small machines where they have more processes than this one can start;
    a replay memory is filled, and learning starts early."""
    request: dict[str, Any] = {"algorithm": algorithm, "environment": environment, "device": "cpu"}
    request["stop"] = {"agent_steps": 2_000}
    spec = parse_run_spec(request)
    if spec.config.env_processes > MOST_PROCESSES:
        suiting = [one for one in ALGORITHMS[algorithm].presets if one.suits(spec.catalogue_environment)]
        [preset] = [one for one in suiting if one.id == "two-cpu-cores"]
        request["config"] = preset.config
    if "replay_capacity" in type(spec.config).model_fields:
        request["stop"] = {"agent_steps": 20_000}
        config = {"learning_starts_agent_steps": 500, "agent_steps_per_update": 500} | config
    return parse_run_spec(request | {"config": request.get("config", {}) | config})


@pytest.mark.parametrize(("algorithm", "environment", "config"), list(_measured()))
def test_memory_estimate_is_the_measured_peak_and_up_to_half_more(
    algorithm: str,
    environment: str,
    config: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = default_spec(algorithm, environment, config)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    engine = subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(tmp_path)])
    peak = PeakMemory(engine.pid)
    samples = 0
    for _ in rounds():
        peak.sample()
        reports = only(ReportEvent, logged(tmp_path)) if (tmp_path / "attempts").exists() else []
        if reports and reports[-1].agent_steps >= (spec.stop.agent_steps or 0):
            samples += 1  # while the last evaluation runs
        if engine.poll() is not None or samples == EVALUATION_SAMPLES:
            break
        sleep(0.1)
    engine.terminate()
    # An engine that has finished is also ended by the signal, while Python shuts down.
    assert engine.wait(timeout=PATIENCE_S) in (0, -signal.SIGTERM)
    assert reports[-1].updates > 0
    estimate = spec.memory_estimate_bytes
    with capsys.disabled():
        mib = f"{peak.bytes / 2**20:.0f} MiB, estimated {estimate / 2**20:.0f}"
        print(f"\n{algorithm} on {environment} {config or ''}: {mib}")  # noqa: T201
    assert peak.bytes <= estimate <= 1.5 * peak.bytes
