"""Whole runs on a GPU: what they report of it, and how they end when its memory is used up."""

import gc
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from backend.specs.events import AnyEvent, EndedEvent, PointsEvent, StartedEvent
from backend.specs.run import RunSpec, parse_run_spec
from tests.support import nvml
from tests.support.devices import DEVICES, GPU
from tests.support.nvml import FakeGpu
from workers.engine.training import loop, usage
from workers.engine.training.event_log import read_frames
from workers.engine.training.loop import Training
from workers.engine.training.nvml import gpu_by_uuid

LEFT_BYTES = 256 * 2**20
"""Memory of the GPU that is left to a run: enough to start and to act in."""
LARGE: dict[str, dict[str, Any]] = {
    "dqn": {"batch_size": 4_096, "learning_starts_agent_steps": 64, "replay_capacity": 5_000},
    "paac": {"n_e": 64, "n_w": 1, "t_max": 64},
}
"""Runs whose first update needs more than that: the activations of 4,096 decisions take 460 MB."""
LOWER = {"dqn": "lower config.batch_size (4,096)", "paac": "lower config.n_e (64)"}


def spec_of(algorithm: str, environment: str, device: str, config: dict[str, Any]) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "device": device,
            "stop": {"agent_steps": 80},
            "config": {"evaluation_episodes": 0, **config},
        }
    )


def train(spec: RunSpec, run_dir: Path) -> list[AnyEvent]:
    Training(spec, run_dir).run()
    frames = read_frames(run_dir / "attempts" / "1" / "events.log")
    return [event for events, _ in frames for event in events]


@pytest.mark.parametrize("device", DEVICES)
def test_run_reports_the_gpu_that_it_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """By NVML itself on a GPU; on a CPU by the stand-in for it."""
    if device == "cpu":
        nvml.install(monkeypatch, FakeGpu())
        monkeypatch.setattr(loop, "gpu_of", lambda device: gpu_by_uuid("GPU-0"))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 2**20)
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    events = train(spec_of("paac", "CartPole-v1", device, {"n_e": 4, "n_w": 1}), tmp_path)
    [started] = [event for event in events if isinstance(event, StartedEvent)]
    assert started.device.startswith("cuda:")
    values = defaultdict[str, list[float]](list)
    for event in events:
        if isinstance(event, PointsEvent):
            values[event.metric] += event.value
    assert all(0 <= value <= 100 for value in values["system/gpu_pct"])
    assert min(values["system/gpu_memory_bytes"]) >= 2**20
    assert min(values["system/gpu_power_w"]) > 0
    assert len(values["system/gpu_pct"]) == len(values["system/gpu_power_w"]) > 0


@contextmanager
def little_memory() -> Iterator[None]:
    """Take all of the GPU's memory but `LEFT_BYTES`, so that the driver itself has no more to give."""
    gc.collect()
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    taken = torch.empty(free - LEFT_BYTES, dtype=torch.uint8, device="cuda")
    try:
        yield
    finally:
        del taken
        gc.collect()
        torch.cuda.empty_cache()


@pytest.mark.parametrize("algorithm", [pytest.param(name, marks=GPU) for name in LARGE])
def test_run_that_uses_up_the_memory_fails_with_what_to_lower(tmp_path: Path, algorithm: str) -> None:
    spec = spec_of(algorithm, "Catch-v0", "cuda", {"network": "nature", **LARGE[algorithm]})
    with little_memory():
        events = train(spec, tmp_path)
    ended = events[-1]
    assert isinstance(ended, EndedEvent)
    assert ended.state == "failed"
    assert ended.reason.startswith("out of memory on the GPU of ")
    assert LOWER[algorithm] in ended.reason
    assert "set config.precision to bf16" in ended.reason
