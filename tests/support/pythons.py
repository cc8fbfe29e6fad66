"""Environments of the client alone: for each Python that it is for and that the machine has, and with each
tool whose logs it reads through that tool's own package, or whose shell it is used in.

`make test-long` runs this module. Pythons are found by their names, such as `python3.9`, and below
`PYENV_ROOT`; what is missing is printed, and its test is skipped.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".pythons"
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
OLDEST = VERSIONS[0]
"""This one has the oldest versions of packages that the client accepts."""
FOREIGN = ("mlflow", "wandb")
"""Extras of the client, each in an environment of this Python."""
SHELL = "ipython"
"""The package of notebooks' shell, in an environment of this Python."""


def interpreter(name: str) -> Path | None:
    """The Python of an environment that `main` has made, by version or extra."""
    path = FOLDER / name / "bin" / "python"
    return path if path.exists() else None


def with_extra(extra: str) -> Path:
    """The Python of an environment with an extra; skips the test where it could not be made."""
    path = interpreter(extra)
    if path is None:
        pytest.skip(f"callboard-client[{extra}] could not be got: run python -m tests.support.pythons")
    return path


def with_shell() -> Path:
    """The Python of an environment with IPython; skips the test where it could not be made."""
    path = interpreter(SHELL)
    if path is None:
        pytest.skip("IPython could not be got: run python -m tests.support.pythons")
    return path


def oldest_requirements() -> list[str]:
    """The client's dependencies in the oldest versions that it accepts."""
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text("utf-8"))["project"]
    return [requirement.replace(">=", "==") for requirement in project["dependencies"]]


def main() -> None:
    """Make the environments that are missing; print which Pythons cannot be had."""
    for version in VERSIONS:
        if interpreter(version) is None:
            python = _find(version)
            wanted = oldest_requirements() if version == OLDEST else []
            if problem := _make(version, python, wanted) if python else f"there is no python{version}":
                print(f"the client is not tested on Python {version}: {problem}")
    for extra in FOREIGN:
        if interpreter(extra) is None and (problem := _make(extra, sys.executable, [], f"[{extra}]")):
            print(f"the client is not tested with {extra}: {problem}")
    if interpreter(SHELL) is None and (problem := _make(SHELL, sys.executable, [SHELL])):
        print(f"the client is not tested in cells of notebooks: {problem}")


def _find(version: str) -> str | None:
    versions = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    installed = sorted(versions.glob(f"{version}.*/bin/python"), reverse=True)
    for path in (shutil.which(f"python{version}"), *map(str, installed)):
        # A shim of pyenv's is there, and fails, where its Python is not chosen.
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def _make(name: str, python: str, wanted: list[str], extra: str = "") -> str | None:
    """Make an environment; returns what prevented it."""
    folder = FOLDER / name
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    for command in (
        [python, "-m", "venv", "--clear", str(folder)],
        [*pip, *wanted, f"{ROOT / 'client'}{extra}"],
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
