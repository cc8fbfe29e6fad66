"""CPU, memory and GPU that this process and its descendants use."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_MIB = 2**20
_GPU_TIMEOUT_S = 5.0
_GPU_FIELDS = ("index", "uuid", "utilization.gpu", "memory.used", "power.draw")


class Usage:
    """Measures what is used between two samples."""

    def __init__(self) -> None:
        self._at, self._cpu_s = time.monotonic(), {pid: cpu_s for pid, cpu_s, _, _ in _processes()}

    def sample(self) -> dict[str, float]:
        """Metrics since the last sample, as those of Callboard's own runs."""
        rows, now = [*_processes()], time.monotonic()
        passed_s, before = max(now - self._at, 1e-3), self._cpu_s
        self._at, self._cpu_s = now, {pid: cpu_s for pid, cpu_s, _, _ in rows}
        metrics = {}
        if rows:
            spent_s = sum(cpu_s - before.get(pid, 0.0) for pid, cpu_s, _, _ in rows)
            # The resident memory of each process includes the shared pages.
            resident = sum(resident - shared for _, _, resident, shared in rows)
            metrics["system/cpu_pct"] = 100 * spent_s / passed_s
            metrics["system/rss_bytes"] = float(resident + max(shared for _, _, _, shared in rows))
        return {**metrics, **_gpu_metrics()}


def _processes() -> Iterator[tuple[int, float, int, int]]:
    """PID, CPU time in s, resident and shared memory in bytes of this process and its descendants.

    None without a file system /proc.
    """
    fields: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for path in _PROC.iterdir():
            if path.name.isdecimal():
                with suppress(OSError, ValueError, IndexError):  # it has ended
                    pid = int(path.name)
                    fields[pid] = (path / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                    children.setdefault(int(fields[pid][1]), []).append(pid)
    pids = [os.getpid()]
    for pid in pids:  # grows
        pids += children.get(pid, [])
    ticks, page = float(os.sysconf("SC_CLK_TCK")), int(os.sysconf("SC_PAGE_SIZE"))
    for pid in pids:
        with suppress(OSError, ValueError, IndexError, KeyError):
            user, system = int(fields[pid][11]), int(fields[pid][12])
            _, resident, shared = (_PROC / str(pid) / "statm").read_text().split()[:3]
            yield pid, (user + system) / ticks, int(resident) * page, int(shared) * page


def _gpu_metrics() -> dict[str, float]:
    """Mean utilisation, and sums of memory and power, of the GPUs that `CUDA_VISIBLE_DEVICES` leaves."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    command = [program, f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GPU_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return gpu_metrics([row for row in rows if len(row) == len(_GPU_FIELDS)], _visible())


def _visible() -> list[str] | None:
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def gpu_metrics(rows: list[list[str]], visible: list[str] | None) -> dict[str, float]:
    """Metrics of the rows of nvidia-smi.

    Args:
        rows: by GPU its index, UUID, utilisation in %, memory in MiB and power in W.
        visible: indices, or beginnings of UUIDs; None: all.
    """
    if visible is not None:
        rows = [row for row in rows if any(name == row[0] or row[1].startswith(name) for name in visible)]
    metrics = {}
    for metric, column, factor, is_mean in (
        ("system/gpu_pct", 2, 1.0, True),
        ("system/gpu_memory_bytes", 3, _MIB, False),
        ("system/gpu_power_w", 4, 1.0, False),
    ):
        values = []
        for row in rows:
            with suppress(ValueError):  # "[N/A]"
                values.append(float(row[column]))
        if values:
            metrics[metric] = factor * sum(values) / (len(values) if is_mean else 1)
    return metrics
