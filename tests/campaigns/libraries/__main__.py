"""Real libraries log to Callboard, or write files that it imports, each in a pinned environment of its own.

    python -m tests.campaigns.libraries [LIBRARY ...] [--python PATH]

Each module beside this one trains with a library, and prints as JSON what that library itself says of each
run: algorithm, environment, seed, settings, group, score, steps and end. This compares it with what the
server has. With CALLBOARD_URL and CALLBOARD_TOKEN it uses that server, else it starts one.
"""

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import callboard
from tests.support.installation import Installation

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NAMES = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
ENVIRONMENTS = ROOT / ".pythons" / "libraries"
FIELDS = ("algorithm", "environment", "seed", "group", "state", "step_unit", "agent_steps")


def main() -> int:
    """Run the libraries; 1 if one of them says something else than the server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", nargs="*", default=NAMES, help="default: all of them")
    parser.add_argument("--python", help="use this Python for all, instead of an environment of each")
    given = parser.parse_args()
    n_failed = 0
    with _server(), tempfile.TemporaryDirectory() as folder:
        for name in given.library:
            problems = _check(name, Path(folder), given.python or _environment(name))
            print(f"{name}: {'right' if not problems else '; '.join(problems)}", flush=True)  # noqa: T201
            n_failed += bool(problems)
    return 1 if n_failed else 0


@contextmanager
def _server() -> Iterator[None]:
    if "CALLBOARD_URL" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as home:
        installation = Installation(Path(home) / "home")
        os.environ |= {"CALLBOARD_HOME": str(installation.home), "CALLBOARD_URL": installation.url}
        try:
            yield
        finally:
            installation.stop()


def _environment(name: str) -> str:
    """The Python of a library's environment, which is made if it is missing."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted = importlib.import_module(f"tests.campaigns.libraries.{name}").REQUIREMENTS
        subprocess.run([python, "-m", "pip", "--quiet", "install", *wanted, "httpx", "numpy"], check=True)
        (folder / "ready").touch()
    return str(python)


def _check(name: str, folder: Path, python: str) -> list[str]:
    """How the runs of a library differ from what it says of them."""
    path = folder / name
    path.mkdir()
    group = f"{name} {folder.name}"
    # tests.campaigns needs the server's packages; the module itself needs the library's alone.
    variables = os.environ | {"PYTHONPATH": str(ROOT / "client"), "LIBRARY_GROUP": group}
    variables["PYTHONSAFEPATH"] = "1"  # a module here has its library's name
    command = [python, str(HERE / f"{name}.py")]
    done = subprocess.run(command, cwd=path, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"exit status {done.returncode}: {done.stderr[-2_000:]}"]
    wanted = json.loads(done.stdout.splitlines()[-1])
    with callboard.connect() as client:
        runs = client.runs(f'group:"{group}"').refresh()
        stored = {run.name: run for run in runs}
    problems = [] if len(stored) == len(wanted) == len(runs) else [f"runs {sorted(run.name for run in runs)}"]
    for says in wanted:
        run = stored.get(says["name"])
        if run is None:
            problems.append(f"no run {says['name']!r}")
            continue
        has = run.data | {"group": group}
        problems += [
            f"{says['name']}: {field} is {has[field]!r}, not {says[field]!r}"
            for field in FIELDS
            if field in says and has[field] != says[field]
        ]
        if "score" in says and not _are_close(run.score, says["score"]):
            problems.append(f"{says['name']}: score is {run.score}, not {says['score']}")
        config = run.data["spec"]["config"]
        problems += [
            f"{says['name']}: setting {key} is {config.get(key)!r}, not {value!r}"
            for key, value in says.get("config", {}).items()
            if config.get(key) != value
        ]
    return problems


def _are_close(score: float | None, wanted: Any) -> bool:
    return score is not None and math.isclose(score, wanted, rel_tol=1e-3, abs_tol=1e-3)


if __name__ == "__main__":
    sys.exit(main())
