"""The disk of this host's run directories: its free space, and its faults."""

import shutil
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

from backend.specs import machine_faults

FAULT_LASTS_S = 60.0
"""How long a host claims nothing after a fault of its disk."""

FILLING = 2.0
"""Multiple of the minimum free space below which retention is applied immediately, before claims stop."""


class Disk:
    """Decides whether this host may claim work; safe to use from several threads.

    Args:
        folder: a folder on the disk; it need not exist yet.
        min_free_bytes: with less free space, the host claims nothing.
        clock: monotonic, in seconds.
    """

    def __init__(self, folder: Path, min_free_bytes: int, clock: Callable[[], float] = monotonic) -> None:
        self._folder = folder
        self._min_free_bytes = min_free_bytes
        self._clock = clock
        self._fault: tuple[float, int] | None = None

    def record_fault(self, number: int) -> None:
        """An engine or supervisor met this errno."""
        self._fault = (self._clock(), number)

    def read(self) -> dict[str, Any]:
        """The disk's part of `backend.specs.host_load.HostLoad`."""
        folder = next(path for path in (self._folder, *self._folder.parents) if path.exists())
        usage = shutil.disk_usage(folder)
        return {
            "disk_bytes": usage.total,
            "disk_free_bytes": usage.free,
            "disk_problem": self._problem(usage.free),
        }

    def is_filling(self, free_bytes: int) -> bool:
        """Whether retention is to be applied immediately."""
        return self._recent_fault() is not None or free_bytes < FILLING * self._min_free_bytes

    def _problem(self, free_bytes: int) -> str | None:
        if (fault := self._recent_fault()) is not None:
            return f"{machine_faults.describe(fault)}: claims no runs for {FAULT_LASTS_S:.0f} s"
        if free_bytes < self._min_free_bytes:
            return (
                f"{free_bytes / 2**20:,.0f} MiB free: claims no runs with less than "
                f"{self._min_free_bytes / 2**20:,.0f} MiB (CALLBOARD_MIN_FREE_DISK_BYTES)"
            )
        return None

    def _recent_fault(self) -> int | None:
        if self._fault is None or self._clock() - self._fault[0] >= FAULT_LASTS_S:
            return None
        return self._fault[1]
