"""The GPUs that NVML reports, by a stand-in for it; with a GPU, also by NVML itself."""

import sys

import pytest
import torch

from tests.support import nvml
from tests.support.nvml import FakeGpu, FakeNvml
from workers.engine.training.nvml import gpu_by_uuid, visible_gpus
from workers.engine.training.usage import gpu_of

THREE = [FakeGpu("NVIDIA H200", f"GPU-{letter}{letter}") for letter in "abc"]


@pytest.mark.parametrize(
    ("variable", "devices"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        ("GPU-bb, GPU-aa", [1, 0]),
        ("GPU-c", [2]),
        ("GPU-,0", []),  # the beginning of three
        ("0,3,1", [0]),
        ("0,-1,1", [0]),
        ("-1", []),
        ("", []),
        (",0", []),
        ("0,0", []),  # CUDA uses none if one is named twice
        ("GPU-a,GPU-aa", []),
        ("GPU-aa,1", [0]),  # it ignores names of another kind than the first
        ("1,GPU-aa", [1]),
        ("G", []),
        ("\u00b2", []),  # a digit, but no number
        ("all", []),  # for a container's `NVIDIA_VISIBLE_DEVICES`
        ("NoDevFiles", []),
        ("MIG-b7", [3]),
        ("MIG-b7,GPU-aa", [3]),
    ],
)
def test_visible_gpus_are_those_that_cuda_may_use(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, devices: list[int]
) -> None:
    fake = nvml.install(monkeypatch, *THREE, FakeGpu("NVIDIA H200 MIG 1g.18gb", "MIG-b7"))
    monkeypatch.setattr(fake, "nvmlDeviceGetCount", lambda: 3)  # an instance is found by its UUID alone
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert [gpu.index for gpu in visible_gpus()] == devices


@pytest.mark.parametrize(
    ("variable", "devices"), [(None, [0, 2]), ("2,0", [2, 0]), ("0,1,2", [0]), ("GPU-bb", [])]
)
def test_gpu_that_has_failed_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, devices: list[int]
) -> None:
    nvml.install(monkeypatch, THREE[0], FakeGpu("NVIDIA H200", "GPU-bb", has_failed=True), THREE[2])
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert [gpu.index for gpu in visible_gpus()] == devices


def test_gpu_has_its_number_and_uuid_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install(monkeypatch, *THREE)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    [gpu] = visible_gpus()
    assert (gpu.index, gpu.uuid, gpu.device) == (1, "GPU-bb", "cuda:1 (NVIDIA H200)")


@pytest.mark.parametrize("module", [None, FakeNvml(None)])
def test_without_nvml_or_driver_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch, module: object) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert visible_gpus() == []
    assert gpu_by_uuid("GPU-aa") is None


def test_load_has_what_the_gpu_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install(monkeypatch, FakeGpu(), FakeGpu(uuid="GPU-1", gpu_pct=None, power_w=None))
    memory = {"memory_used_bytes": 2.0**30, "memory_bytes": 80 * 2.0**30}
    whole, part = visible_gpus()
    assert whole.load() == {"gpu_pct": 50.0, "power_w": 300.0, "power_limit_w": 700.0} | memory
    assert part.load() == memory


def test_process_bytes_are_those_of_the_given_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install(monkeypatch, FakeGpu(process_bytes={1: 10, 2: 200, 3: None, 4: 4_000}))
    [gpu] = visible_gpus()
    assert gpu.process_bytes({1, 2, 3}) == 210
    assert gpu.process_bytes({7}) == 0


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gpu_of_cuda_device_is_the_one_that_torch_uses() -> None:
    gpu = gpu_of(torch.device("cuda", 0))
    assert gpu is not None
    assert torch.cuda.get_device_name(0) in gpu.device
    load = gpu.load()
    assert load["memory_bytes"] >= torch.cuda.mem_get_info(0)[1]
    assert load["power_w"] > 0
    assert 0 <= load["gpu_pct"] <= 100
