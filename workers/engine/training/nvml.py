"""NVIDIA GPUs as their driver reports them (NVML); there are none without a driver. Needs no torch."""

import os
from collections.abc import Collection
from contextlib import suppress
from typing import Any


class Gpu:
    """A GPU, or an instance of one that MIG has divided.

    Args:
        nvml: the module `pynvml`, initialised.
        handle: NVML's handle of the GPU.
    """

    index: int
    """Its number on the machine, as `nvidia-smi` prints it; of an instance, that within its GPU."""
    uuid: str
    """Its name in `CUDA_VISIBLE_DEVICES`, such as `GPU-8c3b…`."""
    device: str
    """Its device name, such as `cuda:0 (NVIDIA H200)`."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self.index = int(nvml.nvmlDeviceGetIndex(handle))
        self.uuid = str(nvml.nvmlDeviceGetUUID(handle))
        self.device = f"cuda:{self.index} ({nvml.nvmlDeviceGetName(handle)})"

    def load(self) -> dict[str, float]:
        """What it reports of its use now, by all processes.

        - `gpu_pct`: share of the last second or less in which a kernel was executed, in per cent.
        - `memory_used_bytes`, `memory_bytes`: used and total memory.
        - `power_w`, `power_limit_w`: power draw and its limit.
        """
        nvml, handle, values = self._nvml, self._handle, dict[str, float]()
        with suppress(nvml.NVMLError):
            values["gpu_pct"] = float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        with suppress(nvml.NVMLError):
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            values |= {"memory_used_bytes": float(memory.used), "memory_bytes": float(memory.total)}
        with suppress(nvml.NVMLError):
            values["power_w"] = nvml.nvmlDeviceGetPowerUsage(handle) / 1000
        with suppress(nvml.NVMLError):
            values["power_limit_w"] = nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
        return values

    def process_bytes(self, pids: Collection[int]) -> int:
        """Its memory that these processes use; 0 where NVML does not report it, as in most containers."""
        with suppress(self._nvml.NVMLError):
            processes = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
            return sum(process.usedGpuMemory or 0 for process in processes if process.pid in pids)
        return 0


def visible_gpus() -> list[Gpu]:
    """The GPUs that CUDA may use in this process: all, or those that `CUDA_VISIBLE_DEVICES` names.

    Numbers in the variable are taken for NVML's. CUDA's are the same if all GPUs are of one model, or with
    `CUDA_DEVICE_ORDER=PCI_BUS_ID`.
    """
    nvml = _initialised()
    if nvml is None:
        return []
    with suppress(nvml.NVMLError):
        gpus = [Gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount())]
        named = os.environ.get("CUDA_VISIBLE_DEVICES")
        if named is None:
            return gpus
        visible = []
        for name in named.split(","):
            if (gpu := _find(name.strip(), gpus)) is None:
                break  # CUDA ignores all after an invalid name
            visible.append(gpu)
        return visible
    return []


def gpu_by_uuid(uuid: str) -> Gpu | None:
    """The GPU, or the instance of one, with this UUID; None if NVML knows none."""
    nvml = _initialised()
    if nvml is not None:
        with suppress(nvml.NVMLError):
            return Gpu(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid))
    return None


def _find(name: str, gpus: list[Gpu]) -> Gpu | None:
    """The GPU that a name in `CUDA_VISIBLE_DEVICES` means: a number, a UUID or the beginning of one."""
    if name.isdigit():
        return gpus[int(name)] if int(name) < len(gpus) else None
    beginning = [gpu for gpu in gpus if name and gpu.uuid.startswith(name)]
    return beginning[0] if len(beginning) == 1 else gpu_by_uuid(name)


def _initialised() -> Any:
    """The module `pynvml`, initialised; None where it is not installed or there is no driver."""
    with suppress(ImportError):
        import pynvml  # type: ignore[import-untyped]

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            return pynvml
    return None
