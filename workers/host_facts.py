"""Facts about this machine and its load. Imports no torch, to keep the worker process small."""

import fcntl
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import structlog

from backend.specs import extras
from backend.specs.algorithms import ALGORITHMS, PACKAGE_PROBLEMS
from backend.specs.algorithms.common import bf16_instructions
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.custom import FILE_VARIABLE
from workers import cgroups
from workers.engine.training.nvml import visible_gpus

log = structlog.get_logger(__name__)

_WORKER_ID_FILE = "worker-id"
_PACKAGES = ("callboard", "torch", "gymnasium", "ale-py", "numpy", "av", *extras.PACKAGES.values())
_REQUIRED_MODULES = {
    "atari": "ale_py",
    "mujoco": "mujoco",
    "labyrinth": "vizdoom",
    "racing": extras.PACKAGES["racing"],
    "envpool": extras.PACKAGES["envpool"],
}
"""Module that an environment family needs in addition to gymnasium."""

_CHECK_TIMEOUT_S = 120.0
"""Maximum time for trying other people's code in one process."""

READINGS_KEPT = 60
"""Number of readings kept: some minutes at one every few seconds."""


def worker_id(home: Path) -> str:
    """Id of this home directory's worker; created at the first call.

    Raises:
        OSError: it cannot be read or stored.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (home / _WORKER_ID_FILE).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # of two workers that start at once, the first creates it
        file.seek(0)
        known = file.read()
        if not known:
            known = uuid4().hex
            file.write(known)
            file.flush()
            os.fsync(file.fileno())
    return known


def known_worker_id(home: Path) -> str | None:
    """The id of this home directory's worker, if there has been one.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return (home / _WORKER_ID_FILE).read_text() or None
    except FileNotFoundError:
        return None


def versions(refused_packages: Mapping[str, str], of_environments: Iterable[str | None]) -> dict[str, str]:
    """Versions of the engine's main packages that are installed, and of the distributions with algorithms or
    environments of their own.

    Args:
        refused_packages: distributions whose algorithms are left out.
        of_environments: the distributions of custom environments.
    """
    installed = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    packages = {algorithm.package for algorithm in ALGORITHMS.values()} - refused_packages.keys()
    packages |= set(of_environments)
    return installed | dict(package.split("==", 1) for package in sorted(filter(None, packages)))


def refused_packages() -> dict[str, str]:
    """Distribution with its version -> why the algorithms that it declares cannot be trained here; their
    methods are loaded in a child process."""
    by_id = {name: algorithm.package for name, algorithm in ALGORITHMS.items() if algorithm.package}
    reasons = _try_all("workers.engine.methods.registry", list(by_id), os.environ)
    return PACKAGE_PROBLEMS | {by_id[name]: reason for name, reason in reasons.items()}


def refused_environments(file: Path | None, names: Sequence[str]) -> dict[str, str]:
    """Id -> why it cannot be used, of custom environments of this host; their code runs in a child process.

    Args:
        file: the host's file of custom environments.
        names: their ids.
    """
    environ = os.environ | ({} if file is None else {FILE_VARIABLE: str(file)})
    return _try_all("workers.engine.envs.custom", names, environ)


def _try_all(module: str, names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Name -> why its code cannot be used, as a module reports it in child processes."""
    reasons: dict[str, str | None] = {}
    while remaining := [name for name in names if name not in reasons]:
        reasons |= _try(module, remaining, environ)
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _try(module: str, names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str | None]:
    """Try other people's code in a child process, up to the first that ends or blocks it.

    Returns:
        Name -> why it cannot be used, or None if it can, of those that were tried.
    """
    command = [sys.executable, "-m", module, *names]
    try:
        done = subprocess.run(
            command, env=environ, stdout=subprocess.PIPE, timeout=_CHECK_TIMEOUT_S, check=False
        )
        code, printed = done.returncode, done.stdout
        failure = (
            f"its code ended the process {f'by signal {-code}' if code < 0 else f'with exit code {code}'}"
        )
    except subprocess.TimeoutExpired as error:
        printed = error.stdout or b""
        failure = f"its code did not return within {_CHECK_TIMEOUT_S:.0f} s"
    reasons: dict[str, str | None] = {}
    for line in printed.splitlines():  # that code may print, too
        with suppress(ValueError, TypeError):
            name, reason = json.loads(line)
            if name in names:
                reasons[name] = reason
    unanswered = [name for name in names if name not in reasons]
    return reasons | ({unanswered[0]: failure} if unanswered else {})


def environments() -> list[str]:
    """Ids of the catalogue environments that this host can run."""
    families = {env.family for env in ENVIRONMENTS.values()}
    available = {
        family
        for family in families
        if find_spec("gymnasium") and find_spec(_REQUIRED_MODULES.get(family, "gymnasium"))
    }
    return [env.id for env in ENVIRONMENTS.values() if env.family in available]


def cpu_count() -> int:
    """CPU cores that this process may use: by its affinity, and by the limit of its container."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cgroups.cores(n)


def cpu_device() -> str:
    """`cpu`, with the processor's bf16 instruction sets if it has any, such as `cpu (avx512_bf16)`."""
    instructions: list[str] = []
    with suppress(OSError):
        instructions = bf16_instructions(Path("/proc/cpuinfo").read_text())
    return f"cpu ({', '.join(instructions)})" if instructions else "cpu"


def memory_bytes() -> int:
    """Total memory of the machine or container."""
    total, limit = psutil.virtual_memory().total, cgroups.memory_limit_bytes()
    return total if limit is None else min(total, limit)


def available_memory_bytes() -> int:
    """Memory available now, on the machine or in the container."""
    available, free = psutil.virtual_memory().available, cgroups.free_memory_bytes()
    return available if free is None else min(available, free)


def torch_has_cuda() -> bool:
    """Whether the installed PyTorch is a build for CUDA; read from its version file, without importing it."""
    torch = find_spec("torch")
    for folder in (torch and torch.submodule_search_locations) or ():
        spec = spec_from_file_location("torch_version", Path(folder) / "version.py")
        if spec is not None and spec.loader is not None:
            version = module_from_spec(spec)
            with suppress(Exception):  # of an installation that is torn in any way
                spec.loader.exec_module(version)
            return getattr(version, "cuda", None) is not None
    return False


class Gpus:
    """The NVIDIA GPUs that this worker may use; none without a driver, or with a PyTorch that has no CUDA."""

    def __init__(self) -> None:
        self._gpus = visible_gpus()
        if self._gpus and not torch_has_cuda():
            reason = "the PyTorch that is installed is a build for CPUs: install one for CUDA"
            if find_spec("torch") is None:
                reason = "PyTorch is not installed: install a build for CUDA"
            log.warning("gpus.unused", devices=self.devices, reason=reason)
            self._gpus = []

    @property
    def devices(self) -> list[str]:
        """The device name of each GPU, such as `cuda:0 (NVIDIA H200)`."""
        return [gpu.device for gpu in self._gpus]

    def load(self) -> list[dict[str, float]]:
        """Current use of each GPU, with its number on the machine."""
        return [{"index": gpu.index, **gpu.load()} for gpu in self._gpus]

    def choose(self, in_use: Sequence[str | None]) -> str | None:
        """UUID of the GPU for the next run; None with fewer than two, where CUDA needs no choice.

        It is the GPU with the fewest of this worker's runs. Of several such GPUs it is the one with the least
        memory in use, since other processes may use them, too.

        Args:
            in_use: the GPU of each run that this worker trains.
        """
        if len(self._gpus) < 2:
            return None
        return min(
            self._gpus,
            key=lambda gpu: (in_use.count(gpu.uuid), gpu.load().get("memory_used_bytes", 0.0)),
        ).uuid


class Load:
    """CPU, memory and GPU load of the machine, with recent history."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._read_at: deque[float] = deque(maxlen=READINGS_KEPT)
        self._cpu: deque[float] = deque(maxlen=READINGS_KEPT)
        self._memory: deque[float] = deque(maxlen=READINGS_KEPT)
        self._each_gpu = [deque[float](maxlen=READINGS_KEPT) for _ in gpus.devices]

    def read(self) -> dict[str, Any]:
        """A reading in the form of `backend.specs.host_load.HostLoad`; CPU use is since the last reading."""
        cpu_pct, gpus, total = psutil.cpu_percent(None), self._gpus.load(), memory_bytes()
        used = max(0, total - available_memory_bytes())
        self._read_at.append(time.monotonic())
        self._cpu.append(round(cpu_pct / 100, 2))
        self._memory.append(round(used / total, 2))
        for past, now in zip(self._each_gpu, gpus, strict=True):
            if "gpu_pct" in now:
                past.append(round(now["gpu_pct"] / 100, 2))
        recent = {
            "cpu": [*self._cpu],
            "memory": [*self._memory],
            "gpus": [[*past] for past in self._each_gpu],
            "duration_s": round(self._read_at[-1] - self._read_at[0]),
        }
        return {"cpu_pct": cpu_pct, "memory_used_bytes": used, "gpus": gpus, "recent": recent}
