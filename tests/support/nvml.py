"""A stand-in for `pynvml`: no driver can be had where the tests run."""

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest


@dataclass
class FakeGpu:
    """A GPU of a machine without one; None: it does not report the value."""

    name: str = "NVIDIA H200"
    uuid: str = "GPU-0"
    gpu_pct: int | None = 50
    memory_used_bytes: int = 2**30
    power_w: float | None = 300.0
    has_failed: bool = False
    """Whether NVML lists it without giving access to it."""
    process_bytes: dict[int, int | None] = field(default_factory=dict)
    """Memory of each process, by PID."""


class FakeNvml:
    """Stands in for `pynvml` on a machine with these GPUs; None: without a driver."""

    class NVMLError(Exception):
        """As NVML's own."""

    def __init__(self, gpus: list[FakeGpu] | None) -> None:
        self._gpus = gpus
        self.calls: list[str] = []

    def nvmlInit(self) -> None:
        if self._gpus is None:
            raise self.NVMLError
        self.calls.append("init")

    def nvmlShutdown(self) -> None:
        self.calls.append("shutdown")

    def nvmlDeviceGetCount(self) -> int:
        return len(self._gpus or [])

    def nvmlDeviceGetHandleByIndex(self, i: int) -> FakeGpu:
        assert self._gpus is not None
        if self._gpus[i].has_failed:
            raise self.NVMLError
        return self._gpus[i]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:
        for gpu in self._gpus or []:
            if gpu.uuid == uuid and not gpu.has_failed:
                return gpu
        raise self.NVMLError

    def nvmlDeviceGetIndex(self, gpu: FakeGpu) -> int:
        assert self._gpus is not None
        return self._gpus.index(gpu)

    def nvmlDeviceGetUUID(self, gpu: FakeGpu) -> str:
        return gpu.uuid

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> str:
        return gpu.name

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> SimpleNamespace:
        return SimpleNamespace(gpu=self._reported(gpu.gpu_pct))

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu) -> SimpleNamespace:
        return SimpleNamespace(used=gpu.memory_used_bytes, total=80 * 2**30)

    def nvmlDeviceGetPowerUsage(self, gpu: FakeGpu) -> int:
        return round(1000 * self._reported(gpu.power_w))

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: FakeGpu) -> int:
        return round(1000 * self._reported(gpu.power_w and 700.0))

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGpu) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in gpu.process_bytes.items()]

    def _reported(self, value: float | None) -> float:
        if value is None:
            raise self.NVMLError
        return value


def install(monkeypatch: pytest.MonkeyPatch, *gpus: FakeGpu) -> FakeNvml:
    """Let this process have these GPUs, all of them visible to CUDA."""
    nvml = FakeNvml(list(gpus))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return nvml


def install_with_pytorch(monkeypatch: pytest.MonkeyPatch, *gpus: FakeGpu) -> FakeNvml:
    """As `install`, and let a worker have a PyTorch for them."""
    monkeypatch.setattr("workers.host_facts.torch_has_cuda", lambda: True)
    return install(monkeypatch, *gpus)
