"""What an attempt is trained with: code, packages, command and machine."""

import os
import platform
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from backend.specs.provenance import Provenance

_PACKAGES = (
    "torch",
    "numpy",
    "numba",
    "gymnasium",
    "ale-py",
    "mujoco",
    "box2d",
    "vizdoom",
    "envpool",
    "opencv-python-headless",
    "ray",
)
"""Packages that a series may depend on; those that are not installed are left out."""
_ROOT = Path(__file__).resolve().parents[3]
_GIT_TIMEOUT_S = 60.0


def provenance() -> Provenance:
    """The provenance of what this process trains from now on."""
    commit, dirty = commit_of(_ROOT)
    return Provenance(
        version=metadata.version("callboard"),
        commit=commit,
        dirty=dirty,
        packages=packages(),
        # Bytes that are not text become question marks.
        command=[argument.encode(errors="replace").decode() for argument in sys.orig_argv],
        processor=processor(),
        cpu_count=len(os.sched_getaffinity(0)),
        gpus=gpus(),
    )


def packages() -> dict[str, str]:
    """Package -> version, with Python's among them."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def commit_of(root: Path) -> tuple[str | None, bool | None]:
    """The commit of the checkout with this root, and whether its tracked files differ from it.

    Nothing is known of an installed package, even within another project's checkout.
    """
    if not (root / ".git").exists():
        return None, None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None, None  # no git, or a checkout that it refuses to read
    return commit, bool(changes)


def processor() -> str:
    """Model of the processor, or its architecture where the kernel does not name it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.machine()


def gpus() -> list[str]:
    """Models of the machine's NVIDIA GPUs, by NVML: asking torch would start CUDA in this process."""
    with suppress(ImportError):
        import pynvml  # type: ignore[import-untyped]

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            try:
                handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
                return [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
            finally:
                pynvml.nvmlShutdown()
    return []


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_GIT_TIMEOUT_S)
    return done.stdout.strip()
