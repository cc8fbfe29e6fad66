"""CPU, memory and GPU use of a run.

Apart from `loop`, because it measures processes and devices and knows nothing of training.
"""

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from backend.specs.host_load import CPU_GRANTED
from workers.engine.training.nvml import Gpu, gpu_by_uuid

INTERVAL_S = 10.0
"""Minimum time between two samples: each reads every process of the machine. The first ones come sooner, each
after twice the time of the one before, so that a run of seconds has some too."""
FIRST_INTERVAL_S = 1.0
PROC = Path("/proc")
_Waits = dict[tuple[int, int], tuple[int, int]]
"""PID and thread -> its time on a core and its waiting for one, in ns."""


def gpu_of(device: torch.device) -> Gpu | None:
    """The GPU that torch calls `device`; None if it is a CPU, or without NVML.

    torch numbers the GPUs that `CUDA_VISIBLE_DEVICES` leaves, in CUDA's order; NVML numbers all GPUs of the
    machine, in the order of their bus. Only the UUID is the same in both; NVML puts `GPU-` before it, or
    `MIG-` for an instance of a GPU.
    """
    if device.type != "cuda":
        return None
    uuid = torch.cuda.get_device_properties(device).uuid
    return gpu_by_uuid(f"GPU-{uuid}") or gpu_by_uuid(f"MIG-{uuid}")


class Usage:
    """CPU time and memory of this process and its descendants, and use of the GPU that it trains on."""

    gpu: Gpu | None = None
    """The GPU to sample, if there is one."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._sampled_at = time.monotonic()
        self._cpu_s = {pid: cpu_s for pid, cpu_s, _, _ in self._read()}
        self._waits = _waits(self._cpu_s)
        self._interval_s = FIRST_INTERVAL_S

    def sample(self) -> dict[str, float]:
        """Metrics since the last sample; empty before the interval has passed."""
        now = time.monotonic()
        passed_s = now - self._sampled_at
        if passed_s < min(self._interval_s, INTERVAL_S):
            return {}
        self._interval_s *= 2
        processes = self._read()
        spent_s = sum(cpu_s - self._cpu_s.get(pid, 0.0) for pid, cpu_s, _, _ in processes)
        self._sampled_at, self._cpu_s = now, {pid: cpu_s for pid, cpu_s, _, _ in processes}
        # The resident memory of each process includes the shared pages.
        shared = max(shared for _, _, _, shared in processes)
        own = sum(resident - shared for _, _, resident, shared in processes)
        waits = _waits(self._cpu_s)
        granted = _granted_pct(self._waits, waits)
        self._waits = waits
        return {
            "system/cpu_pct": 100 * spent_s / passed_s,
            **({} if granted is None else {CPU_GRANTED: granted}),
            "system/rss_bytes": float(own + shared),
            **_gpu_metrics(self.gpu, self._cpu_s),
        }

    def _read(self) -> list[tuple[int, float, int, int]]:
        """PID, CPU time in s, resident and shared memory in bytes of each process."""
        rows = []
        try:
            children = self._own.children(recursive=True)
        except psutil.AccessDenied:  # /proc may hide the processes of other users
            children = []
        for process in (self._own, *children):
            with suppress(psutil.NoSuchProcess), process.oneshot():
                times, memory = process.cpu_times(), process.memory_info()
                rows.append((process.pid, times.user + times.system, memory.rss, memory.shared))
        return rows


def _waits(pids: Collection[int]) -> _Waits:
    """The kernel's schedstat of each thread of these processes; empty where it keeps none."""
    waits: _Waits = {}
    for pid in pids:
        with suppress(OSError):
            for task in (PROC / str(pid) / "task").iterdir():
                with suppress(OSError, ValueError):
                    on_core, waiting, *_ = (task / "schedstat").read_text("ascii").split()
                    waits[pid, int(task.name)] = int(on_core), int(waiting)
    return waits


def _granted_pct(before: _Waits, after: _Waits) -> float | None:
    """Time on a core in % of that and the waiting for one, between two readings; None without either."""
    on_core = waiting = 0
    for thread, (ran, waited) in after.items():
        ran_before, waited_before = before.get(thread, (0, 0))
        on_core, waiting = on_core + ran - ran_before, waiting + waited - waited_before
    return 100 * on_core / (on_core + waiting) if on_core + waiting > 0 else None


def _gpu_metrics(gpu: Gpu | None, pids: Collection[int]) -> dict[str, float]:
    """Utilisation and power of a GPU, by all processes, and its memory that these processes use.

    Where NVML does not report the memory of processes, it is what torch has reserved in this one: without
    CUDA's context, which takes some 500 MiB.
    """
    if gpu is None:
        return {}
    load = gpu.load()
    memory_bytes = max(gpu.process_bytes(pids), torch.cuda.memory_reserved())
    metrics = {"system/gpu_memory_bytes": float(memory_bytes)}
    for metric, value in (("system/gpu_pct", "gpu_pct"), ("system/gpu_power_w", "power_w")):
        if value in load:
            metrics[metric] = load[value]
    return metrics
