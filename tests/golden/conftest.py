"""The golden home, unpacked."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.golden.home import unpack


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden home as it was stored; a test that changes it copies it."""
    return unpack("home", tmp_path_factory.mktemp("golden") / "home")


@pytest.fixture(scope="module")
def stored(unpacked: Path) -> dict[str, dict[str, Any]]:
    """Name -> id, spec and newest checkpoint of each run, as its rows have them."""
    with closing(sqlite3.connect(f"file:{unpacked / 'callboard.sqlite3'}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT name, runs.id, spec, file, max(checkpoints.agent_steps) FROM runs "
            "JOIN checkpoints ON run_id = runs.id GROUP BY runs.id"
        ).fetchall()
    return {
        name: {"id": run_id, "spec": json.loads(spec), "file": file, "agent_steps": agent_steps}
        for name, run_id, spec, file, agent_steps in rows
    }
