"""CPU, memory and GPU use of a run.

Apart from `loop`, because it measures processes and devices and knows nothing of training.
"""

import time
from collections.abc import Collection
from contextlib import suppress

import psutil
import torch

from workers.engine.training.nvml import Gpu, gpu_by_uuid

INTERVAL_S = 10.0
"""Minimum time between two samples: each reads every process of the machine."""


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

    def sample(self) -> dict[str, float]:
        """Metrics since the last sample; empty before `INTERVAL_S` have passed."""
        now = time.monotonic()
        passed_s = now - self._sampled_at
        if passed_s < INTERVAL_S:
            return {}
        processes = self._read()
        spent_s = sum(cpu_s - self._cpu_s.get(pid, 0.0) for pid, cpu_s, _, _ in processes)
        self._sampled_at, self._cpu_s = now, {pid: cpu_s for pid, cpu_s, _, _ in processes}
        # The resident memory of each process includes the shared pages.
        shared = max(shared for _, _, _, shared in processes)
        own = sum(resident - shared for _, _, resident, shared in processes)
        return {
            "system/cpu_pct": 100 * spent_s / passed_s,
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
