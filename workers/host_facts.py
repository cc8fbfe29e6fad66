"""What this machine is and how busy it is. Imports no torch: a worker's own process stays small."""

import os
from collections import deque
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.own import OwnWorld, read_own

_PACKAGES = ("callboard", "torch", "gymnasium", "ale-py", "numpy", "av")
_NEEDED = {
    "atari": "ale_py",
    "mujoco": "mujoco",
    "labyrinth": "vizdoom",
    "racing": "Box2D",
    "envpool": "envpool",
}
"""What a family of worlds is made by, where gymnasium alone does not do."""

READINGS_KEPT = 60
"""Of a few seconds each: some minutes."""


def versions() -> dict[str, str]:
    """Versions of what the engine is built on, those that are installed."""
    found = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def own_environments(file: Path | None) -> list[OwnWorld]:
    """Worlds of this host's own.

    Raises:
        OwnWorldsError: their file is wrong.
    """
    return [entry.described() for entry in read_own(file).values()] if file is not None else []


def environments() -> list[str]:
    """Ids of the worlds that can be made here, without the host's own."""
    families = {world.family for world in ENVIRONMENTS.values()}
    there = {
        family
        for family in families
        if find_spec("gymnasium") and find_spec(_NEEDED.get(family, "gymnasium"))
    }
    return [world.id for world in ENVIRONMENTS.values() if world.family in there]


def cpu_count() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Memory of the machine, or of the container it is."""
    return psutil.virtual_memory().total


def available_memory_bytes() -> int:
    """Memory that could be had now."""
    return psutil.virtual_memory().available


class Gpus:
    """The machine's NVIDIA GPUs, asked through the driver; none where there is no driver."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self.names: list[str] = []
        with suppress(ImportError):
            import pynvml  # type: ignore[import-untyped]

            self._nvml = pynvml
            with suppress(pynvml.NVMLError):
                pynvml.nvmlInit()
                self._handles = [
                    pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())
                ]
                self.names = [
                    f"cuda:{i} ({pynvml.nvmlDeviceGetName(h)})" for i, h in enumerate(self._handles)
                ]

    def load(self) -> list[dict[str, float]]:
        """Use of each GPU now; nothing of one that does not answer."""
        found: list[dict[str, float]] = [{} for _ in self._handles]
        for handle, now in zip(self._handles, found, strict=True):
            with suppress(self._nvml.NVMLError):
                rates = self._nvml.nvmlDeviceGetUtilizationRates(handle)
                memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
                now["gpu_pct"] = float(rates.gpu)
                now["memory_used_bytes"] = float(memory.used)
                now["memory_bytes"] = float(memory.total)
        return found


class Load:
    """How busy the machine is, and was at the readings before."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._cpu: deque[float] = deque(maxlen=READINGS_KEPT)
        self._memory: deque[float] = deque(maxlen=READINGS_KEPT)
        self._each_gpu = [deque[float](maxlen=READINGS_KEPT) for _ in gpus.names]

    def read(self) -> dict[str, Any]:
        """A reading as `backend.hosts.schemas.HostLoad` has it; processor use is since the one before."""
        cpu_pct, memory, gpus = psutil.cpu_percent(None), psutil.virtual_memory(), self._gpus.load()
        used = memory.total - memory.available
        self._cpu.append(round(cpu_pct / 100, 2))
        self._memory.append(round(used / memory.total, 2))
        for past, now in zip(self._each_gpu, gpus, strict=True):
            if "gpu_pct" in now:
                past.append(round(now["gpu_pct"] / 100, 2))
        recent = {
            "cpu": [*self._cpu],
            "memory": [*self._memory],
            "gpus": [[*past] for past in self._each_gpu],
        }
        return {"cpu_pct": cpu_pct, "memory_used_bytes": used, "gpus": gpus, "recent": recent}
