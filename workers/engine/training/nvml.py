"""NVIDIA GPUs as their driver reports them (NVML); there are none without a driver. Needs no torch."""

import os
from collections.abc import Collection, Sequence
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

    GPUs that NVML lists without giving access, such as one that has failed, are left out. Numbers in the
    variable are taken for NVML's. CUDA's are the same if all GPUs are of one model, or with
    `CUDA_DEVICE_ORDER=PCI_BUS_ID`. Without the variable, a GPU that MIG has divided counts as one.
    """
    nvml = _initialised()
    if nvml is None:
        return []
    with suppress(nvml.NVMLError):
        gpus = [_gpu_by_number(nvml, i) for i in range(nvml.nvmlDeviceGetCount())]
        variable = os.environ.get("CUDA_VISIBLE_DEVICES")
        if variable is None:
            return [gpu for gpu in gpus if gpu is not None]
        return _named(variable, gpus)
    return []


def _gpu_by_number(nvml: Any, number: int) -> Gpu | None:
    """The GPU with NVML's number; None if NVML gives no access to it."""
    with suppress(nvml.NVMLError):
        return Gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(number))
    return None


def _named(variable: str, gpus: Sequence[Gpu | None]) -> list[Gpu]:
    """The GPUs that CUDA uses by a value of `CUDA_VISIBLE_DEVICES`.

    CUDA ignores an invalid name and all after it, and names of another kind than the first. With a GPU that
    is named twice it uses none.
    """
    names = [name.strip() for name in variable.split(",")]
    visible = list[Gpu]()
    for name in names:
        gpu = _find(name, gpus) if _kind(name) == _kind(names[0]) else None
        if gpu is None:
            break
        visible.append(gpu)
    return visible if len({gpu.uuid for gpu in visible}) == len(visible) else []


def gpu_by_uuid(uuid: str) -> Gpu | None:
    """The GPU, or the instance of one, with this UUID; None if NVML knows none."""
    nvml = _initialised()
    if nvml is not None:
        with suppress(nvml.NVMLError):
            return Gpu(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid))
    return None


def _kind(name: str) -> str | None:
    """What a name in `CUDA_VISIBLE_DEVICES` is: `number`, `GPU-` or `MIG-` for the beginning of a UUID, or
    None."""
    if name.isascii() and name.isdigit():
        return "number"
    return next((prefix for prefix in ("GPU-", "MIG-") if name.startswith(prefix)), None)


def _find(name: str, gpus: Sequence[Gpu | None]) -> Gpu | None:
    """The GPU that a name in `CUDA_VISIBLE_DEVICES` means: a number, a UUID or the beginning of one."""
    match _kind(name):
        case None:
            return None
        case "number":
            return gpus[int(name)] if int(name) < len(gpus) else None
    matching = [gpu for gpu in gpus if gpu is not None and gpu.uuid.startswith(name)]
    # Instances of MIG are not among `gpus`.
    return matching[0] if len(matching) == 1 else gpu_by_uuid(name)


def _initialised() -> Any:
    """The module `pynvml`, initialised; None where it is not installed or there is no driver."""
    with suppress(ImportError):
        import pynvml  # type: ignore[import-untyped]

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            return pynvml
    return None
