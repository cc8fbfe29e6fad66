"""The tests of `make test`, which every change must pass: `python -m tests.gate [PATH ...]`.

All tests but those marked `long` or `benchmark`, in three processes, beside `make check`. If a test process
crashes, the tests without a result run once more in new processes; a second crash fails. Tests that failed
run once more, alone in a fresh process, unless `why_no_retry` gives a reason. Those that pass then are named
at the end: `flaky: ID, ID`.

`python -m tests.gate long [PATH ...]` runs the tests of `make test-long`, none twice, whatever fails. It ends
with the command that repeats what failed. One PostgreSQL server serves all processes.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import gmtime, monotonic, strftime
from typing import Any

import pytest

from tests.support.databases import POSTGRES_URL, postgres_server

CHECK = ["make", "--no-print-directory", "check"]
# Processes take files in order. No process replaces one that crashed: xdist would run completed files again.
SHARED = ["--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"]
GATE = ["--numprocesses=3", *SHARED, "-m", "not long and not benchmark"]
# These wait for other processes about as much as they compute.
LONG = [f"--numprocesses={min((os.cpu_count() or 1) + 2, 8)}", *SHARED, "-m", "long and not benchmark"]

MAX_RETRIED = 5
NEVER_RETRIED = re.compile(
    r"tests/(backend/coordination/test_claims\.py|workers/test_recorder\.py|backend/db/|.*/test_repository\.py)"
)
"""Tests whose failure may be a race in the product, which a retry would hide."""

CONSOLE = os.fdopen(os.dup(1), "w", buffering=1)  # standard output, also while pytest captures it


class Outcome:
    """A pytest plugin that keeps the results of the tests that `run` runs."""

    def __init__(self) -> None:
        self.exit_code = 0
        self.selected: dict[str, None] = {}
        self.finished: dict[str, None] = {}
        self.failed: dict[str, None] = {}
        self.broken: list[str] = []
        self.crashes: list[str] = []

    @property
    def unfinished(self) -> list[str]:
        """The selected tests without a result."""
        return [test for test in self.selected if test not in self.finished]

    def run(self, arguments: Sequence[str]) -> None:
        self.exit_code = int(pytest.main([*arguments], plugins=[self]))

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self.selected.update(dict.fromkeys(ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken.append(f"{report.nodeid} could not be collected")

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            process = node.gateway._io.popen  # noqa: SLF001 - execnet has no public name for it
            self.crashes.append(f"a test process crashed with status {process.wait(timeout=60)}: {error}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(f"\nfailed: {report.nodeid}", file=CONSOLE)  # pytest does at its end, which may not come
            self.failed[report.nodeid] = None
        if report.when == "teardown":
            self.finished[report.nodeid] = None


def run_gate(paths: Sequence[str], check: Sequence[str] = CHECK) -> int:
    """Run the gate's tests beside the command `check`, then those that failed again; returns an exit code."""
    outcome = Outcome()
    with ThreadPoolExecutor() as pool:
        checking = pool.submit(run_check, check)
        announce("tests")
        outcome.run([*GATE, *paths])
        if outcome.crashes and outcome.unfinished and not outcome.broken:
            print("; ".join(outcome.crashes))
            outcome.crashes.clear()
            for test in outcome.unfinished:
                outcome.failed.pop(test, None)
            announce(f"{len(outcome.unfinished)} tests without a result")
            outcome.run([*GATE, *outcome.unfinished])
    reason = "check failed" if checking.result() else why_no_retry(outcome)
    if outcome.failed and not reason:
        announce("retry")
        again = Outcome()
        again.run(["--numprocesses=1", "--max-worker-restart=0", *outcome.failed])
        passed = not again.exit_code and again.finished.keys() == outcome.failed.keys()
        reason = None if passed else "a test failed twice"
    if reason or outcome.failed:
        print(f"make test: {reason}" if reason else f"flaky: {', '.join(outcome.failed)}")
    return 1 if reason else 0


def why_no_retry(outcome: Outcome) -> str | None:
    """Why failed tests are not retried; None if nothing else went wrong and each of them may be."""
    if reasons := outcome.broken + outcome.crashes:
        return "; ".join(reasons)
    if missing := len(outcome.unfinished):
        return f"{missing} selected tests have no result"
    if outcome.exit_code not in ((0, 1) if outcome.failed else (0,)):
        return f"pytest ended with exit code {outcome.exit_code}"
    if len(outcome.failed) > MAX_RETRIED:
        return f"{len(outcome.failed)} tests failed, at most {MAX_RETRIED} are retried"
    if races := [test for test in outcome.failed if NEVER_RETRIED.match(test)]:
        return f"not retried, as it may be a race in the product: {', '.join(races)}"
    return None


def run_check(command: Sequence[str]) -> int:
    """Run the command, print all its output when it ends, and return its exit code."""
    began = monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{done.stdout}==> check ended with {done.returncode}, {monotonic() - began:.0f} s", file=CONSOLE)
    return done.returncode


def run_long(paths: Sequence[str]) -> int:
    """Run the long tests; returns an exit code."""
    outcome = Outcome()
    announce("long")
    outcome.run([*LONG, *paths])
    print(*outcome.broken, *outcome.crashes)
    if outcome.failed:
        print(f"{len(outcome.failed)} failed; repeat: .venv/bin/pytest {shlex.join(outcome.failed)}")
    return outcome.exit_code


def announce(stage: str) -> None:
    print(f"==> {stage}, {strftime('%H:%M:%S', gmtime())} UTC", flush=True)


if __name__ == "__main__":
    os.environ.pop("MAKEFLAGS", None)  # of the make that started this: its job server is not handed on
    run, paths = (run_long, sys.argv[2:]) if sys.argv[1:2] == ["long"] else (run_gate, sys.argv[1:])
    with postgres_server() as os.environ[POSTGRES_URL]:
        sys.exit(run(paths))
