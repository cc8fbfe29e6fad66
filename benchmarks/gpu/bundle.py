"""The bundle for a GPU host without a network: `python -m benchmarks.gpu.bundle FOLDER`.

run       checks the host, installs the wheels and starts `benchmarks.gpu`
wheels/   `packages.BUNDLED` at the versions of constraints.txt, and the version of this checkout
source/   the engine, its specs, the benchmarks and the tests marked `cuda`
"""

import argparse
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from backend import __version__
from benchmarks.gpu.packages import BUNDLED, normalize

ROOT = Path(__file__).resolve().parents[2]
MAX_MIB = 35
PARTS = {"run", "wheels", "source"}
"""What a bundle consists of, and nothing else."""
HOST_PYTHON = "3.12"
PLATFORMS = [f"manylinux_2_{glibc}_x86_64" for glibc in (28, 27, 24, 17)] + ["manylinux2014_x86_64"]
"""Platforms of wheels that a GPU host can install, by the version of glibc."""

SOURCES = (
    "LICENSE",
    "pyproject.toml",
    "backend/__init__.py",
    "backend/specs",
    "benchmarks",
    "tests/support",
    "tests/workers/engine",
    "workers/__init__.py",
    "workers/engine_process.py",
    "workers/engine",
)
"""Files and folders of the checkout that are copied to `source/`."""


def pin(names: tuple[str, ...], constraints: str) -> list[str]:
    """Requirements `name==version` by the text of constraints.txt.

    Raises:
        ValueError: it does not name a package.
    """
    lines = [line for line in constraints.splitlines() if "==" in line]
    pins = {normalize(line.partition("==")[0]): line for line in lines}
    if unknown := [name for name in names if name not in pins]:
        raise ValueError(f"constraints.txt has no version of {', '.join(unknown)}: run `make constraints`")
    return [pins[name] for name in names]


def download_wheels(folder: Path, python: str) -> None:
    """Download the wheels of `BUNDLED` for a version of Python."""
    requirements = pin(BUNDLED, (ROOT / "constraints.txt").read_text("utf-8"))
    command = [
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--quiet",  # twice: no warnings about places without wheels
        "--disable-pip-version-check",
        "--timeout=60",
        "download",
    ]
    command += ["--no-deps", "--only-binary=:all:", f"--python-version={python}", "--implementation=cp"]
    command += [f"--platform={platform}" for platform in PLATFORMS]
    subprocess.run([*command, f"--dest={folder}", *requirements], check=True)


def write_version_wheel(folder: Path) -> None:
    """Write a wheel of `callboard` that is metadata only: the version and commit of `source/`."""
    commit = _git("rev-parse", "--short=12", "HEAD").strip()
    changed = ".changed" if _git("status", "--porcelain") else ""
    version = f"{__version__}+{commit}{changed}"
    info = f"callboard-{version}.dist-info"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: callboard\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: callboard\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "".join(f"{info}/{name},,\n" for name in ("METADATA", "WHEEL", "RECORD")),
    }
    with zipfile.ZipFile(folder / f"callboard-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(f"{info}/{name}", text)


def copy_source(folder: Path) -> None:
    """Copy `SOURCES` as they are in the checkout, without what git ignores."""
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES)
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():  # not deleted since the last commit
            target = folder / "source" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    shutil.copy(ROOT / "benchmarks/gpu/run", folder / "run")


def measure_mib(folder: Path) -> float:
    """The size of all files in a folder, in MiB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def build(folder: Path, python: str) -> None:
    """Build the bundle in `folder` in place of a former one.

    Raises:
        ValueError: the folder holds something else, or the bundle is larger than `MAX_MIB`.
    """
    if folder.exists() and (others := {path.name for path in folder.iterdir()} - PARTS):
        raise ValueError(f"{folder} holds {min(others)}, which is no part of a bundle; name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "wheels").mkdir(parents=True)
    download_wheels(folder / "wheels", python)
    write_version_wheel(folder / "wheels")
    copy_source(folder)
    if (size_mib := measure_mib(folder)) > MAX_MIB:
        raise ValueError(f"{folder} is {size_mib:.1f} MiB; a bundle may be {MAX_MIB} MiB")


def main() -> int:
    """Build the bundle that the arguments name; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the bundle for a GPU host.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=HOST_PYTHON, help="Python of the host (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        build(arguments.folder, arguments.python)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        return int(error.returncode)  # pip or git has printed why
    print(f"{arguments.folder}: {measure_mib(arguments.folder):.1f} MiB for Python {arguments.python}")
    return 0


def _git(*arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
