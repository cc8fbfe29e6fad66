"""The tests of `make test`, which every change must pass: `python -m tests.gate`.

1. tests: all but the browser tests, in three processes, beside `make check`;
2. browser: the browser tests, with nothing beside them;
3. retry: the tests that failed, once more, alone in a fresh process.

If a test process crashes, it is printed how, and the tests without a result run once more in fresh processes;
a second crash fails. If all failed tests pass when retried, the last line names them: `flaky: ID, ID`.
`why_no_retry` says when no test is retried.

`python -m tests.gate long` runs the tests of `make test-long`: all of them, whatever fails, and none twice.
At its end it names what failed and the command that repeats it.

One PostgreSQL server, started first, serves all processes of pytest.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import gmtime, monotonic, strftime

from tests.support.databases import POSTGRES_URL, postgres_server
from tests.support.stages import BROWSER_TESTS

CHECK = ["make", "--no-print-directory", "check"]
DISTRIBUTED = ["--dist=loadgroup", "--max-worker-restart=0"]
"""How processes share the tests. None takes the place of one that crashed: pytest-xdist would hand out its
completed groups again, and wait for their results for ever."""
STAGES = {
    "tests": ["--numprocesses=3", *DISTRIBUTED, "--stage=tests"],
    "browser": ["--stage=browser", *BROWSER_TESTS],
}
"""pytest's arguments by stage. The first stage runs beside `CHECK`."""
LONG = [f"--numprocesses={min((os.cpu_count() or 1) + 2, 8)}", *DISTRIBUTED, "--stage=long"]
"""These tests wait for other processes about as much as they compute."""

MAX_RETRIED = 5
NEVER_RETRIED = re.compile(
    r"tests/(backend/coordination/test_claims\.py|workers/test_recorder\.py|backend/db/|.*/test_repository\.py"
    r"|campaigns/chaos/test_invariants\.py)"
)
"""Tests whose failure may be a race in the product, which a retry would hide."""


@dataclass(frozen=True)
class Outcome:
    """The result of one run of pytest, as `tests.support.outcome` records it."""

    exit_code: int
    selected: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Tracebacks by test id."""
    broken: list[str] = field(default_factory=list)
    """Errors of collection."""
    crashes: list[str] = field(default_factory=list)
    """How test processes ended that crashed."""

    @property
    def unfinished(self) -> list[str]:
        """The selected tests without a result."""
        finished = set(self.finished)
        return [test for test in self.selected if test not in finished]


def main() -> int:
    """Run the gate or the long tests; returns the exit code."""
    os.environ.pop("MAKEFLAGS", None)  # of the make that started this: its job server is not handed on
    with postgres_server() as os.environ[POSTGRES_URL]:
        return run_long(LONG) if sys.argv[1:] == ["long"] else run_gate(STAGES, CHECK)


def run_long(arguments: Sequence[str]) -> int:
    """Run all of these tests; returns an exit code."""
    _announce("long")
    outcome = run_pytest(arguments)
    for reason in outcome.broken + outcome.crashes:
        print(reason)
    if outcome.failed:
        print(
            f"{len(outcome.failed)} failed; repeat them with\n  .venv/bin/pytest {shlex.join(outcome.failed)}"
        )
    return outcome.exit_code


def run_gate(stages: dict[str, list[str]], check: Sequence[str]) -> int:
    """Run `stages`, the first beside the command `check`, then retry failed tests; returns an exit code."""
    outcomes: list[Outcome] = []
    with subprocess.Popen(check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as checking:
        reporting = Thread(target=_report_check, args=[checking], daemon=True)
        try:
            _announce("check")
            reporting.start()
            for name, arguments in stages.items():
                _announce(name)
                outcomes.append(run_stage(arguments))
                reporting.join()
                if checking.returncode:
                    return _failed("check failed")
                if outcomes[-1].exit_code and (reason := why_no_retry(outcomes)):
                    return _failed(f"{name} failed; not retried: {reason}")
        finally:
            checking.terminate()
    return _retry(outcomes)


def run_stage(arguments: Sequence[str]) -> Outcome:
    """Run pytest; after the crash of a test process, run the tests without a result once more."""
    outcome = run_pytest(arguments)
    if outcome.broken or not outcome.crashes or not outcome.unfinished:
        return outcome
    print(f"crashed: {'; '.join(outcome.crashes)}")
    _announce(f"{len(outcome.unfinished)} tests without a result")
    with TemporaryDirectory(prefix="gate-") as folder:
        names = Path(folder) / "tests.txt"
        names.write_text("\n".join(outcome.unfinished))
        options = [argument for argument in arguments if argument.startswith("-")]
        again = run_pytest([*options, f"@{names}"])
    crashed = set(outcome.unfinished)
    failed = {test: error for test, error in outcome.failed.items() if test not in crashed} | again.failed
    return Outcome(
        1 if failed and again.exit_code in (0, 1) else again.exit_code,
        outcome.selected,
        outcome.finished + again.finished,
        failed,
        again.broken,
        again.crashes,
    )


def run_pytest(arguments: Sequence[str]) -> Outcome:
    """Run pytest in a new process that prints as usual."""
    with TemporaryDirectory(prefix="gate-") as folder:
        path = Path(folder) / "outcome.json"
        plugin = ["-p", "tests.support.outcome", f"--outcome={path}"]
        exit_code = subprocess.run(
            [sys.executable, "-m", "pytest", *plugin, *arguments], check=False
        ).returncode
        recorded = json.loads(path.read_text()) if path.exists() else {"broken": ["no outcome was recorded"]}
    return Outcome(exit_code, **recorded)


def why_no_retry(outcomes: Sequence[Outcome]) -> str | None:
    """The reason why the failed tests of `outcomes` may not be retried, None if they may.

    They may if every run was whole (it ended by itself, no test process crashed twice, each selected test
    has a result), at most `MAX_RETRIED` tests failed, and none of them matches `NEVER_RETRIED`.
    """
    failed = [test for outcome in outcomes for test in outcome.failed]
    for outcome in outcomes:
        if reasons := outcome.broken + outcome.crashes:
            return "; ".join(reasons)
        if outcome.exit_code != (1 if outcome.failed else 0):
            return f"pytest ended with exit code {outcome.exit_code}"
        if missing := len(outcome.unfinished):
            return f"{missing} selected tests have no result"
    if len(failed) > MAX_RETRIED:
        return f"{len(failed)} tests failed, at most {MAX_RETRIED} are retried"
    if races := [test for test in failed if NEVER_RETRIED.match(test)]:
        return f"a failure of {', '.join(races)} may be a race in the product"
    return None


def _retry(outcomes: Sequence[Outcome]) -> int:
    failed = {
        test: outcome.failed[test]
        for outcome in outcomes
        for test in outcome.selected
        if test in outcome.failed
    }
    if not failed:
        return 0
    _announce("retry")
    again = run_pytest(["--numprocesses=0", *failed])
    if again.exit_code or set(again.finished) != set(failed):
        return _failed("a test failed twice")
    for test, traceback in failed.items():
        print(f"\n{test} failed at first:\n{traceback}")
    print(f"flaky: {', '.join(failed)}", flush=True)
    return 0


def _report_check(checking: "subprocess.Popen[str]") -> None:
    """Print the whole output of `checking` when it ends, with its result."""
    began = monotonic()
    output, _ = checking.communicate()
    result = "failed" if checking.returncode else "passed"
    print(f"\n{output}==> check {result} after {monotonic() - began:.0f} s\n", flush=True)


def _announce(stage: str) -> None:
    print(f"==> {stage}, {strftime('%H:%M:%S', gmtime())} UTC", flush=True)


def _failed(message: str) -> int:
    print(f"make test: {message}", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
