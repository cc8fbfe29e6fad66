"""The engine's tests marked `cuda`; see `benchmarks.gpu.cuda_tests`."""

import os
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.gpu import cuda_tests
from benchmarks.gpu.stages.base import StageContext

ROW = "pytest"
_MAX_FAILURES = 20
"""Failed tests that the results name."""


def run(context: StageContext) -> None:
    """Run them, and add their numbers as one row."""
    log, report = context.folder / "tests.log", context.folder / "tests.xml"
    command = [*cuda_tests.command(context.device), f"--junitxml={report}"]
    error = None
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            cwd=cuda_tests.ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(max(0.0, context.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            error = "killed at the stage's deadline"
        finally:  # after Ctrl-C too
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    record: dict[str, Any] = {"summary": lines[-1].strip("= ") if lines else ""}
    if error is None and not report.exists():
        error = f"pytest exited with status {process.returncode} and wrote no report"
    if error is not None:
        record["error"] = error
    else:
        record |= counts(report)
        if problem := check_counts(record, context.device):
            record["error"] = problem
    context.add(ROW, record)


def check_counts(record: dict[str, Any], device: str) -> str | None:
    """Why these numbers of tests show nothing about the device, if so.

    Args:
        record: the record as `counts` returns it.
        device: `cuda`, where a skipped test is one that saw no GPU, or `cpu`.
    """
    if not record["passed"] + record["failed"] + record["skipped"]:
        return "no test was collected"
    if record["skipped"] and device == "cuda":
        return f"tests skipped: {record['skipped']}; PyTorch cannot use a GPU"
    return None if record["passed"] + record["failed"] else "every test was skipped"


def counts(report: Path) -> dict[str, Any]:
    """Numbers of passed, failed and skipped tests in a JUnit file, and the names of the failed."""
    tests = list(ElementTree.parse(report).getroot().iter("testcase"))  # noqa: S314 - pytest wrote it
    failed = [
        f"{test.get('classname')}::{test.get('name')}"
        for test in tests
        if test.find("failure") is not None or test.find("error") is not None
    ]
    n_skipped = sum(test.find("skipped") is not None for test in tests)
    return {
        "passed": len(tests) - len(failed) - n_skipped,
        "failed": len(failed),
        "skipped": n_skipped,
        "failures": failed[:_MAX_FAILURES],
    }
