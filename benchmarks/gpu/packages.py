"""The packages of a bare GPU host, and what the benchmark needs besides them.

`python -m benchmarks.gpu.packages WHEELS ARGUMENTS` checks this machine before anything is installed. It
prints a line for each thing that is missing or of a wrong version, or the folder of the wheels. It needs the
standard library and pip only; if nothing is missing, it asks PyTorch for the GPU.
"""

import os
import platform
import re
import sys
import zipfile
from collections.abc import Iterable
from email import message_from_bytes
from importlib import metadata
from pathlib import Path

from benchmarks.gpu.arguments import parse

HOST_PACKAGES = Path(__file__).with_name("host_packages.txt")
"""Packages of a bare GPU host, one a line."""

NEEDED = {
    "torch": "the engine",
    "numpy": "the engine",
    "numba": "the engine",
    "opencv-python-headless": "the engine",
    "psutil": "the engine",
    "threadpoolctl": "the engine",
    "nvidia-ml-py": "the engine",
    "cloudpickle": "gymnasium, Stable-Baselines3",
    "pandas": "Stable-Baselines3",
    "matplotlib": "Stable-Baselines3",
    "pytest": "the tests marked `cuda`",
    "pytest-timeout": "the tests marked `cuda`",
    "pip": "the installation of the wheels",
}
"""Package that the host must have -> what needs it."""

LOADED = (
    "anyio",
    "hypothesis",
    "jaxtyping",
    "pytest-cov",
    "pytest-mock",
    "pytest-xdist",
    "rich",
    "tensorboard",
    "tqdm",
)
"""Packages of a bare GPU host that pytest and Stable-Baselines3 load where they are installed."""

BUNDLED = (
    "ale-py",
    "annotated-types",
    "farama-notifications",
    "gymnasium",
    "pydantic",
    "pydantic-core",
    "stable-baselines3",
    "typing-extensions",  # the host has it, perhaps older than pydantic needs
    "typing-inspection",
)
"""Packages that the bundle brings."""

COMPILED = re.compile(r"-cp(\d)(\d+)-[^-]+-manylinux[^-]*?_(x86_64|[^-_]+)\.whl$")
"""A compiled wheel's file name: Python's version and the architecture."""


def normalize(name: str) -> str:
    """A package's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_host_packages() -> set[str]:
    """The names of `HOST_PACKAGES`."""
    lines = HOST_PACKAGES.read_text("utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


def list_missing(needed: Iterable[str] = NEEDED) -> list[str]:
    """Those of `needed` that are not installed."""
    names = [distribution.metadata["Name"] for distribution in metadata.distributions()]
    installed = {normalize(name) for name in names if name}  # what an interrupted pip leaves has none
    return [name for name in needed if name not in installed]


def check_interpreter(wheels: Iterable[str], version: tuple[int, int], machine: str) -> list[str]:
    """Why Python `version` on `machine` cannot use `wheels`, which are file names."""
    wanted = {match.groups() for wheel in wheels if (match := COMPILED.search(wheel))}
    if not wanted:
        return []
    (major, minor, architecture), *others = wanted
    if not others and (int(major), int(minor), architecture) == (*version, machine):
        return []
    this = f"this is Python {version[0]}.{version[1]} on {machine}"
    return [f"the wheels are for Python {major}.{minor} on {architecture}; {this}"]


def check_wheels(wheels: Iterable[str]) -> list[str]:
    """Which of `BUNDLED` are not among `wheels`, which are file names."""
    names = {normalize(wheel.partition("-")[0]) for wheel in wheels}
    build = "`make gpu-bundle` in a checkout"
    if not names:
        return [f"missing: the wheels; build them with {build}"]
    return [
        f"missing: the wheel of {name}; build the wheels again with {build}"
        for name in BUNDLED
        if name not in names
    ]


def check_versions(wheels: Iterable[Path]) -> list[str]:
    """Which of `wheels` are damaged, and which of the host's packages are too old or too new for them."""
    try:
        from pip._vendor.packaging.requirements import Requirement
    except ImportError:  # some distributions of Linux take pip apart
        return []
    problems = []
    for path in wheels:
        try:
            requirements = _requirements(path)
        except zipfile.BadZipFile:
            problems.append(f"damaged: {path.name}; copy the wheels again")
            continue
        for line in requirements:
            needed = Requirement(line)
            name = normalize(needed.name)
            is_used = needed.marker is None or needed.marker.evaluate({"extra": ""})
            if name in BUNDLED or not is_used or list_missing([name]):
                continue
            version = metadata.version(name)
            if not needed.specifier.contains(version, prereleases=True):
                wheel = path.name.partition("-")[0].replace("_", "-")
                problems.append(f"{name} is {version}, but {wheel} needs {name}{needed.specifier}")
    return problems


def _requirements(wheel: Path) -> list[str]:
    """What a wheel requires, as its metadata states it."""
    with zipfile.ZipFile(wheel) as archive:
        path = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(path)).get_all("Requires-Dist") or []


def check_gpu() -> list[str]:
    """Why no GPU can be used, by NVML, which answers at once."""
    import pynvml  # type: ignore[import-untyped]

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return [f"missing: a GPU with its driver ({error}); without one: --device cpu"]
    return [] if count else ["missing: a GPU; without one: --device cpu"]


def check_torch() -> list[str]:
    """Why PyTorch cannot compute on the GPU. Its import takes seconds, which the first stage then saves."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return [f"torch cannot be imported: {error}"]
    try:
        torch.ones(1, device="cuda").item()
    except (AssertionError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        return [f"torch {torch.__version__} cannot use a GPU: {reason}; without one: --device cpu"]
    return []


def check(wheels: Path, device: str) -> list[str]:
    """What keeps the benchmark from running on this machine."""
    paths = sorted(wheels.glob("*.whl"))
    names = [path.name for path in paths]
    problems = check_interpreter(names, sys.version_info[:2], platform.machine()) + check_wheels(names)
    if names and not os.access(wheels, os.W_OK | os.X_OK):
        problems.append(f"{wheels} cannot be written to; copy the folder to where it can")
    missing = list_missing()
    problems += [f"missing: {name} (needed by {NEEDED[name]})" for name in missing]
    if "pip" not in missing:
        problems += check_versions(paths)
    if device != "cpu" and "nvidia-ml-py" not in missing:
        problems += check_gpu()
    if device != "cpu" and not problems:
        problems = check_torch()
    return problems


def main() -> int:
    """Check this machine and the benchmark's arguments; returns the exit code, 3 after `--help`."""
    default, *others = sys.argv[1:]
    try:
        arguments = parse(others)
    except SystemExit as end:
        return 3 if end.code == 0 else 2
    wheels = (arguments.wheels or Path(default)).resolve()
    problems = check(wheels, arguments.device)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 2
    print(wheels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
