"""`make quick`: run the units that depend on what has changed since they last passed.

A test depends on every module that its file imports, directly or not, and on those that the `conftest.py`
files above it import at the top. Whatever else tests read (data files, migrations, the lists of packages, a
`conftest.py`) counts for all of them. Nothing is traced: the imports are read from the source.

pytest-testmon does not fit: it follows `.py` files alone, so a change of the data that tests read would
start none, and it runs every test under coverage, which slows the loops of numerical code most.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".quick_cache" / "state.json"
PACKAGES = (
    "backend",
    "benchmarks",
    "callboard_algorithms",
    "callboard_cli",
    "callboard_environments",
    "workers",
    "tests",
)
DATA = (
    "alembic/**/*.py",
    "backend/**/*.csv",
    "benchmarks/**/*.txt",
    "docs/constants.md",
    "workers/**/*.json",
    "pyproject.toml",
    "constraints.txt",
)
UNITS = "not learning and not service and not browser and not long and not benchmark"
FEW = 8
"""Up to so many test files one process is quicker than two."""


class Entry(TypedDict):
    """What is remembered of a file: its digest, and the names that it imports from our packages."""

    digest: str
    imports: list[str]


State = dict[str, Entry]
"""By a file's path."""


def is_module(key: str) -> bool:
    """Whether a file is a module that others may import."""
    return key.endswith(".py") and key.partition("/")[0] in PACKAGES


def name_of(key: str) -> str:
    """The module that a file is."""
    path = key.removeprefix("client/").removesuffix(".py").removesuffix("/__init__")
    return path.replace("/", ".")


def imports(path: Path) -> list[str]:
    """Names that a file imports from our packages; of a `conftest.py` only those at the top of the file."""
    tree = ast.parse(path.read_bytes())
    nodes: Iterable[ast.AST] = tree.body if path.name == "conftest.py" else ast.walk(tree)
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return sorted(name for name in names if name.partition(".")[0] in (*PACKAGES, "callboard"))


def scan(before: State) -> State:
    """Every file that a unit may depend on, parsed anew only where it has changed."""
    state: State = {}
    paths = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    paths.update(path for pattern in DATA for path in ROOT.glob(pattern))
    for path in sorted(paths):
        key = str(path.relative_to(ROOT))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if key in before and before[key]["digest"] == digest:
            state[key] = before[key]
        else:
            state[key] = {"digest": digest, "imports": imports(path) if is_module(key) else []}
    return state


def changed(before: State, now: State) -> set[str]:
    """Files that are new, gone or different."""
    return {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}


def affected(now: State, different: set[str]) -> list[str]:
    """Test files that depend on one of the different files."""
    tests = [key for key in now if Path(key).name.startswith("test_")]
    if any(not is_module(key) or key.endswith("conftest.py") for key in different):
        return tests
    file_of = {name_of(key): key for key in now.keys() | different}
    users: dict[str, set[str]] = {}
    for key, entry in now.items():
        # What a conftest.py imports is used by every test below it.
        by = (
            [t for t in tests if t.startswith(f"{Path(key).parent}/")]
            if key.endswith("conftest.py")
            else [key]
        )
        for name in entry["imports"]:
            while name:  # importing a module runs the packages above it too
                if name in file_of:
                    users.setdefault(file_of[name], set()).update(by)
                name = name.rpartition(".")[0]
    reached, waiting = set(different), list(different)
    while waiting:
        new = users.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return [key for key in tests if key in reached]


def main() -> int:
    """Choose, run, and remember what passed."""
    try:
        before: State = json.loads(CACHE.read_text())
    except (OSError, ValueError):
        before = {}
    now = scan(before)
    chosen = affected(now, changed(before, now))
    sys.stdout.write(f"{len(chosen)} test files depend on what has changed\n")
    if chosen:
        options = ["-q", "-m", UNITS, "--hypothesis-profile=quick"]
        options += ["--numprocesses=2", "--dist=worksteal"] if len(chosen) > FEW else []
        status = pytest.main([*options, *chosen])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return int(status)
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps(now))
    return 0


if __name__ == "__main__":
    sys.exit(main())
