"""What a command and the web process load as they start: nothing that only some of their work needs."""

import json
import subprocess
import sys
import time

import pytest

HEAVY = {
    "backend.cli.main": (
        "sqlalchemy",
        "httpx",
        "structlog",
        "celery",
        "numpy",
        "fastapi",
        "backend.specs.run",
    ),
    "backend.app": ("alembic", "pyarrow", "plotly.basedatatypes", "workers"),
}
LIMIT_S = {
    (sys.executable, "-m", "backend.cli.main", "--help"): 0.4,
    (sys.executable, "-c", "import backend.app"): 1.5,
}


@pytest.mark.parametrize("module", HEAVY)
def test_loads_nothing_that_only_some_of_its_work_needs(module: str) -> None:
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert module in loaded
    assert loaded & set(HEAVY[module]) == set()


@pytest.mark.long
@pytest.mark.parametrize("command", LIMIT_S, ids=("callboard --help", "web"))
def test_starts_within_its_limit(command: tuple[str, ...]) -> None:
    taken_s = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        taken_s.append(time.perf_counter() - began)
    print(f"started in {min(taken_s):.2f} s; at most {LIMIT_S[command]} s on a quiet machine")  # noqa: T201
    assert min(taken_s) <= 2 * LIMIT_S[command]  # machines of the day differ
