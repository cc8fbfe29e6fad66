import multiprocessing
import os
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from backend.specs.events import PointsEvent, StartedEvent
from backend.specs.host_load import CPU_GRANTED
from tests.support import nvml
from tests.support.nvml import FakeGpu
from tests.support.waiting import PATIENCE_S
from tests.workers.engine.training.training_runs import cartpole, columns, only, train
from workers.engine.training import loop, usage
from workers.engine.training.nvml import gpu_by_uuid
from workers.engine.training.usage import Usage, gpu_of


def _work(ready: Event, done: Event) -> None:
    held = np.ones(50_000_000, np.uint8)
    until = time.process_time() + 0.3
    while time.process_time() < until:
        held[:100].sum()
    ready.set()
    done.wait()


@pytest.mark.long
@pytest.mark.service
def test_usage_includes_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    child = context.Process(target=_work, args=(ready, done))
    alone = Usage()
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    begun = time.monotonic()  # first: the time that is measured with must not be the shorter one
    before = alone.sample()
    child.start()
    try:
        assert ready.wait(PATIENCE_S)
        after = alone.sample()
        passed_s = time.monotonic() - begun
    finally:
        done.set()
        child.join()
    assert after["system/rss_bytes"] - before["system/rss_bytes"] > 50_000_000
    assert after["system/cpu_pct"] >= 0.9 * 100 * 0.3 / passed_s


def test_usage_is_sampled_at_most_every_interval() -> None:
    assert Usage().sample() == {}


def test_granted_processor_time_is_that_of_all_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "PROC", tmp_path)
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    assert CPU_GRANTED not in Usage().sample()  # a kernel without schedstat

    def write(thread: int, on_core_s: float, waiting_s: float) -> None:
        task = tmp_path / str(os.getpid()) / "task" / str(thread)
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"{on_core_s * 1e9:.0f} {waiting_s * 1e9:.0f} 7\n")

    write(1, 5, 1)
    measured = Usage()
    write(1, 6, 3)
    write(2, 1, 4)  # has started since
    assert measured.sample()[CPU_GRANTED] == pytest.approx(100 * 2 / 8)


def test_gpu_of_cuda_device_is_found_by_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers differ: torch's count the visible GPUs only."""
    nvml.install(monkeypatch, FakeGpu(uuid="GPU-aa"), FakeGpu(uuid="GPU-bb"))
    properties = {torch.device("cuda", 0): SimpleNamespace(uuid="bb")}
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties.__getitem__)
    gpu = gpu_of(torch.device("cuda", 0))
    assert gpu is not None
    assert gpu.device == "cuda:1 (NVIDIA H200)"
    assert gpu_of(torch.device("cpu")) is None


def test_instance_of_a_gpu_is_found_by_uuid_too(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install(monkeypatch, FakeGpu(uuid="GPU-aa"), FakeGpu("NVIDIA H200 MIG 1g.18gb", uuid="MIG-b7"))
    properties = {torch.device("cuda", 0): SimpleNamespace(uuid="b7")}
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties.__getitem__)
    gpu = gpu_of(torch.device("cuda", 0))
    assert gpu is not None
    assert gpu.uuid == "MIG-b7"


@pytest.mark.parametrize(
    ("processes", "reserved", "memory"),
    [
        ({os.getpid(): 700, 1: 9_000}, 200, 700),
        ({1: 9_000}, 200, 200),  # a container, whose PIDs NVML does not know
        ({os.getpid(): None}, 200, 200),
    ],
)
def test_gpu_memory_is_that_of_the_run(
    monkeypatch: pytest.MonkeyPatch, processes: dict[int, int | None], reserved: int, memory: int
) -> None:
    nvml.install(monkeypatch, FakeGpu(process_bytes=processes))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: reserved)
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    measured = Usage()
    measured.gpu = gpu_by_uuid("GPU-0")
    sample = measured.sample()
    assert sample["system/gpu_memory_bytes"] == memory
    assert (sample["system/gpu_pct"], sample["system/gpu_power_w"]) == (50.0, 300.0)


def test_run_on_a_gpu_reports_its_use_and_its_number_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A GPU that reports no power: its metric is missing, the others are not.
    nvml.install(monkeypatch, FakeGpu(), FakeGpu("NVIDIA H200", "GPU-1", power_w=None))
    monkeypatch.setattr(loop, "gpu_of", lambda device: gpu_by_uuid("GPU-1"))
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    logged = train(cartpole({"agent_steps": 40}, n_w=1), tmp_path)
    [started] = only(StartedEvent, logged)
    assert started.device == "cuda:1 (NVIDIA H200)"
    assert columns(logged, "system/gpu_pct") == [(40, 50.0)]
    assert len(columns(logged, "system/gpu_memory_bytes")) == 1
    assert columns(logged, "system/gpu_power_w") == []


def test_run_on_a_cpu_has_no_gpu_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install(monkeypatch, FakeGpu())
    monkeypatch.setattr(usage, "INTERVAL_S", 0.0)
    logged = train(cartpole({"agent_steps": 40}, n_w=1), tmp_path)
    assert columns(logged, "system/cpu_pct")
    assert [event.metric for event in only(PointsEvent, logged) if "gpu" in event.metric] == []
