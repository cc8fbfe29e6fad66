"""Cells of IPython: an exception belongs to the runs to which its cell, or none yet, has logged."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.client.support import Target
from tests.support.pythons import with_shell
from tests.support.waiting import PATIENCE_S

pytestmark = [pytest.mark.long, pytest.mark.service]

ROOT = Path(__file__).parents[2]

SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.argv[1:]:
    shell.run_cell(cell)
"""
START = (
    "import callboard\nrun = callboard.init(algorithm='a', environment='e')\nprint('id', run.id, flush=True)"
)
LOG = "run.log({'a/b': 1.0}, agent_steps=1)"

CELLS = [
    ("finished", [START, LOG]),
    ("finished", ["1 / 0", START, LOG]),
    ("finished", ["typo", "import callboard", START, LOG, "typo", "raise SystemExit(3)"]),
    ("finished", [START, f"{LOG}\n1 / 0", LOG]),
    ("finished", [START, f"{LOG}\n1 / 0", LOG, "not Python", "%no_such_magic"]),
    ("finished", [START, f"try:\n    {LOG}\n    1 / 0\nexcept ZeroDivisionError: pass"]),
    ("failed", [START, f"{LOG}\n1 / 0"]),
    ("failed", [START, LOG, f"{LOG}\nraise SystemExit(3)"]),
    ("failed", [f"{START}\n{LOG}\n1 / 0", "1 + 1", "typo"]),
    ("failed", [START, f"def train():\n    {LOG}\n    raise ValueError('no data')", "train()"]),
    ("failed", [START, "raise ValueError('env broken')"]),
    ("failed", [f"{START}\nraise ValueError('env broken')"]),
    ("failed", [START, "run.config.update(lr=1)", "raise ValueError('env broken')", "1 + 1"]),
    ("finished", [START, "raise ValueError('env broken')", "typo", LOG]),
    ("finished", [START, "def (", "1 + 1"]),
    ("stopped", [START, f"{LOG}\nraise KeyboardInterrupt"]),
]


@pytest.mark.parametrize(("state", "cells"), CELLS, ids=range(len(CELLS)))
def test_run_ends_as_the_last_cell_that_has_logged_to_it(
    target: Target, tmp_path: Path, state: str, cells: list[str]
) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "client"), "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [with_shell(), "-c", SHELL, *cells],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    [run_id] = (line.split()[1] for line in done.stdout.splitlines() if line.startswith("id "))
    assert target.run(run_id)["state"] == state, done.stdout + done.stderr
