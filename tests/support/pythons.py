"""Environments of the client alone, for each Python that it is for and that the machine has.

`make test-long` runs this module. Pythons are found by their names, such as `python3.9`, and below
`PYENV_ROOT`; what is missing is printed, and its test is skipped.
"""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".pythons"
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
OLDEST = VERSIONS[0]
"""This one has the oldest versions of packages that the client accepts."""


def interpreter(version: str) -> Path | None:
    """The Python of an environment that `main` has made."""
    path = FOLDER / version / "bin" / "python"
    return path if path.exists() else None


def oldest_requirements() -> list[str]:
    """The client's dependencies in the oldest versions that it accepts."""
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text("utf-8"))["project"]
    return [requirement.replace(">=", "==") for requirement in project["dependencies"]]


def main() -> None:
    """Make the environments that are missing; print which Pythons cannot be had."""
    for version in VERSIONS:
        if interpreter(version) is None and (problem := _make(version)):
            print(f"the client is not tested on Python {version}: {problem}")


def _find(version: str) -> str | None:
    versions = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    installed = sorted(versions.glob(f"{version}.*/bin/python"), reverse=True)
    for path in (shutil.which(f"python{version}"), *map(str, installed)):
        # A shim of pyenv's is there, and fails, where its Python is not chosen.
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def _make(version: str) -> str | None:
    """Make an environment; returns what prevented it."""
    python = _find(version)
    if python is None:
        return f"there is no python{version}"
    folder = FOLDER / version
    wanted = oldest_requirements() if version == OLDEST else []
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    for command in (
        [python, "-m", "venv", "--clear", str(folder)],
        [*pip, *wanted, str(ROOT / "client")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            return (done.stderr.strip() or done.stdout.strip() or str(done.returncode)).splitlines()[-1]
    # Tests run the checkout's own client.
    subprocess.run([*pip[:-1], "uninstall", "--yes", "callboard-client"], capture_output=True, check=True)
    return None


if __name__ == "__main__":
    main()
