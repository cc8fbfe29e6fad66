"""CPU and memory use of a run."""

import time
from contextlib import suppress

import psutil

INTERVAL_S = 10.0
"""Minimum time between two samples: each reads every process of the machine."""


class Usage:
    """CPU time and memory of this process and its descendants."""

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
        return {"system/cpu_pct": 100 * spent_s / passed_s, "system/rss_bytes": float(own + shared)}

    def _read(self) -> list[tuple[int, float, int, int]]:
        """PID, CPU time in s, resident and shared memory in bytes of each process."""
        found = []
        for process in (self._own, *self._own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess), process.oneshot():
                times, memory = process.cpu_times(), process.memory_info()
                found.append((process.pid, times.user + times.system, memory.rss, memory.shared))
        return found
