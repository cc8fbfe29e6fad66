"""Limits of memory and CPU that a container or a service has: control groups of Linux, versions 1 and 2.

A limit of a parent holds for its children. In a container, the folders show its own group as the root, while
`/proc/self/cgroup` may name its path on the host, which does not exist there.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")

_UNLIMITED = 2**60
"""Version 1 has a number about as large as 2^63 for no limit."""


def memory_limit_bytes() -> int | None:
    """The least limit of memory; None without one."""
    return min((limit for limit, _ in _memory()), default=None)


def free_memory_bytes() -> int | None:
    """The memory left below the limits, droppable file cache included; None without a limit."""
    return min((max(0, limit - used) for limit, used in _memory()), default=None)


def cpu_limit() -> float | None:
    """The least limit of CPU cores, such as 0.5; None without one."""
    limits = []
    for folder in _folders("cpu"):
        text = _text(folder / "cpu.max") or " ".join(
            filter(None, (_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")))
        )
        quota, _, period = text.partition(" ")
        with suppress(ValueError, ZeroDivisionError):  # `max`
            if int(quota) > 0:
                limits.append(int(quota) / int(period))
    return min(limits, default=None)


def cores(n: int) -> int:
    """How many of n cores may be used, at least one."""
    limit = cpu_limit()
    return n if limit is None else max(1, min(n, math.floor(limit)))


def _memory() -> Iterator[tuple[int, int]]:
    """Limit and use of each group that has a limit."""
    for folder in _folders("memory"):
        for limit_name, used_name, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            with suppress(ValueError):  # `max`, or there is no such file
                limit = int(_text(folder / limit_name))
                if limit < _UNLIMITED:
                    droppable = _stat(folder / "memory.stat", cache)
                    yield limit, max(0, int(_text(folder / used_name) or 0) - droppable)


def _folders(controller: str) -> Iterator[Path]:
    """The folders of this process's group and of its parents, of both versions."""
    for line in _text(OWN_GROUPS).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            roots = [GROUPS, GROUPS / "unified"]
        elif controller in controllers.split(","):
            roots = [GROUPS / controllers, GROUPS / controller]
        else:
            continue
        root = next((folder for folder in roots if (folder / "cgroup.procs").exists()), None)
        if root is None:
            continue
        own = root / path.strip("/")
        yield from (
            folder for folder in (own, *own.parents) if folder.is_relative_to(root) and folder.is_dir()
        )


def _stat(path: Path, name: str) -> int:
    lines = (line.split() for line in _text(path).splitlines())
    return next((int(line[1]) for line in lines if line[:1] == [name]), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
