"""What a run takes of its machine."""

import time
from contextlib import suppress

import psutil

INTERVAL_S = 10.0
"""Least time between two looks: one reads every process of the machine."""


class Usage:
    """Processor time and memory of this process and all that it started."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._looked_at = time.monotonic()
        self._cpu_s = {pid: cpu_s for pid, cpu_s, _, _ in self._look()}

    def take(self) -> dict[str, float]:
        """Metrics since the last time they were taken; none before `INTERVAL_S` have passed."""
        now = time.monotonic()
        passed_s = now - self._looked_at
        if passed_s < INTERVAL_S:
            return {}
        seen = self._look()
        spent_s = sum(cpu_s - self._cpu_s.get(pid, 0.0) for pid, cpu_s, _, _ in seen)
        self._looked_at, self._cpu_s = now, {pid: cpu_s for pid, cpu_s, _, _ in seen}
        # What processes share is in the resident memory of each of them.
        shared = max(shared for _, _, _, shared in seen)
        own = sum(resident - shared for _, _, resident, shared in seen)
        return {"system/cpu_pct": 100 * spent_s / passed_s, "system/rss_bytes": float(own + shared)}

    def _look(self) -> list[tuple[int, float, int, int]]:
        """Pid, processor time in s, resident and shared memory in bytes of each process."""
        found = []
        for process in (self._own, *self._own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess), process.oneshot():
                times, memory = process.cpu_times(), process.memory_info()
                found.append((process.pid, times.user + times.system, memory.rss, memory.shared))
        return found
