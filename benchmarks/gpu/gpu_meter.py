"""Measures how busy the GPU and the cores are, from a thread of this process."""

import threading
from types import TracebackType
from typing import Self

import psutil

from workers.engine.training.nvml import visible_gpus

INTERVAL_S = 0.1
"""Between two samples. The driver's values are means themselves: of utilisation over a sixth of a second or
more, of power over a second."""


class GpuMeter:
    """A context manager; `usage` returns the means and maxima of the time within it.

    Without NVML, or without a GPU, only the use of the cores is known.
    """

    def __init__(self) -> None:
        self._gpu = next(iter(visible_gpus()), None)
        self._samples: dict[str, list[float]] = {}
        self._cpu_use = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._sample_repeatedly, daemon=True)

    def __enter__(self) -> Self:
        """Start sampling."""
        psutil.cpu_percent()  # the next call's mean begins here
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop sampling."""
        self._cpu_use = psutil.cpu_percent() / 100
        self._ending.set()
        self._thread.join()

    def usage(self) -> dict[str, float]:
        """What was measured.

        Returns:
            `cpu_use`: mean fraction of all cores of the machine; `gpu_use_mean`, `gpu_use_max`: fraction of
            the time in which a kernel was executed; `gpu_memory_bytes`: the most that was in use, by all
            processes; `power_w_mean`, `power_w_max`. Values that the driver does not have are missing.
        """
        usage = {"cpu_use": self._cpu_use}
        if used_pct := self._samples.get("gpu_pct"):
            usage |= {"gpu_use_mean": _mean(used_pct) / 100, "gpu_use_max": max(used_pct) / 100}
        if memory_bytes := self._samples.get("memory_used_bytes"):
            usage["gpu_memory_bytes"] = max(memory_bytes)
        if power_w := self._samples.get("power_w"):
            usage |= {"power_w_mean": _mean(power_w), "power_w_max": max(power_w)}
        return usage

    def _sample_repeatedly(self) -> None:
        while self._gpu is not None and not self._ending.wait(INTERVAL_S):
            for name, value in self._gpu.load().items():
                self._samples.setdefault(name, []).append(value)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
