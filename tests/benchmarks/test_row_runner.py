"""Rows in processes of their own: failures, late rows, and what is kept."""

import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.gpu.results import JSON_FILE, Results
from benchmarks.gpu.row_runner import NOT_REACHED, Row, run_rows

pytestmark = [pytest.mark.service, pytest.mark.long]
FUNCTIONS = """
import os, subprocess, threading

def measure(what, path=None):
    yield {"begun": what}
    if what == "raise":
        raise ValueError("no such thing")
    if what == "exit":
        os._exit(7)
    if what == "hang":
        child = subprocess.Popen(["sleep", "1000"])
        yield {"child": child.pid}
        threading.Event().wait()
    yield {"agent_steps_per_s": 5.0, "pid": os.getpid()}
"""


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "rows_of_a_test.py").write_text(FUNCTIONS, "utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path.cwd()}")
    return "rows_of_a_test:measure"


def measured(function: str, rows: list[Row], folder: Path, seconds: float = 1000.0) -> dict[str, Any]:
    records: dict[str, Any] = {}
    run_rows(function, rows, deadline=time.monotonic() + seconds, folder=folder, add=records.__setitem__)
    return records


def row(what: str, **settings: Any) -> Row:
    return Row(what, {"what": what.partition(" ")[0]}, **settings)


def test_rows_share_a_process_and_their_facts_are_kept(function: str, tmp_path: Path) -> None:
    first, second = measured(
        function, [row("run", facts={"method": "paac"}), row("run again")], tmp_path
    ).values()
    assert first["pid"] == second["pid"]
    assert first.items() >= {"method": "paac", "begun": "run", "agent_steps_per_s": 5.0}.items()
    assert "method" not in second


@pytest.mark.parametrize(
    ("what", "error"), [("raise", "ValueError: no such thing"), ("exit", "exited with status 7")]
)
def test_next_row_is_measured_after_one_that_fails(
    function: str, tmp_path: Path, what: str, error: str
) -> None:
    records = measured(function, [row("run"), row(what), row("run again")], tmp_path)
    assert error in records[what]["error"]
    assert records[what]["begun"] == what
    assert "error" not in records["run again"]
    assert records["run again"]["pid"] != records["run"]["pid"]


def test_late_row_is_killed_with_its_processes_and_earlier_results_stay(
    function: str, tmp_path: Path
) -> None:
    results = Results(tmp_path / "out", {})
    written: list[dict[str, Any]] = []

    def add(name: str, record: dict[str, Any]) -> None:
        results.add("stage", name, record)
        written.append(json.loads((tmp_path / "out" / JSON_FILE).read_text("utf-8")))

    rows = [row("run"), row("hang", limit_s=0.3), row("run again")]
    run_rows(function, rows, deadline=time.monotonic() + 1000, folder=tmp_path / "logs", add=add)
    first, late, last = results.rows("stage")
    assert first["agent_steps_per_s"] == last["agent_steps_per_s"] == 5.0
    assert "killed after" in late["error"]
    assert not psutil.pid_exists(late["child"]) or psutil.Process(late["child"]).status() == "zombie"
    assert all(content["rows"][0]["row"] == "run" for content in written)
    assert len(written[-1]["rows"]) == 3


def test_rows_after_the_deadline_are_recorded_as_not_reached(function: str, tmp_path: Path) -> None:
    records = measured(function, [row("run", facts={"n_e": 32}), row("run again")], tmp_path, seconds=0.0)
    assert records == {"run": {"n_e": 32, "error": NOT_REACHED}, "run again": {"error": NOT_REACHED}}
