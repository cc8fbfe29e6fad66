"""The stages of the benchmark on a GPU host: the tests that they run, and the processes that they end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.gpu import bundle, cuda_tests
from benchmarks.gpu.results import Results
from benchmarks.gpu.row_runner import NOT_REACHED
from benchmarks.gpu.stages import pong
from benchmarks.gpu.stages import tests as tests_stage
from benchmarks.gpu.stages.base import StageContext
from tests.support.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.long]
SKIPPED = """
import pytest

@pytest.mark.skip(reason="no GPU")
def test_on_the_gpu():
    pass
"""
INTERRUPTED = """
import signal, sys, time
from pathlib import Path

from benchmarks.gpu import cuda_tests
from benchmarks.gpu.__main__ import end_by_signals
from benchmarks.gpu.stages import tests
from benchmarks.gpu.stages.base import StageContext

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)
end_by_signals()
folder = Path(sys.argv[1])
write_pid = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}.'); time.sleep(1000)"
cuda_tests.command = lambda device: [sys.executable, "-c", write_pid, str(folder / "pid")]
tests.run(StageContext("cpu", True, time.monotonic() + 1000, folder, print, lambda stage: []))
"""


def test_stage_of_skipped_tests_has_failed_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_skipped.py"
    path.write_text(SKIPPED, "utf-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take seconds to import
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", str(path)]
    monkeypatch.setattr(cuda_tests, "command", lambda device: command)
    results = Results(tmp_path, {})
    context = StageContext(
        device="cuda",
        is_short=True,
        deadline=time.monotonic() + 1000.0,
        folder=tmp_path,
        add=lambda row, record: results.add("tests", row, record),
        rows_of=results.rows,
    )
    tests_stage.run(context)
    [row] = results.rows("tests")
    assert (row["passed"], row["skipped"]) == (0, 1)
    assert row["error"] == "tests skipped: 1; PyTorch cannot use a GPU"
    assert results.has_failures()


def test_pong_without_time_to_train_is_recorded_as_not_reached(tmp_path: Path) -> None:
    records: dict[str, dict[str, Any]] = {}
    deadline = time.monotonic() - 1.0
    pong.run(StageContext("cpu", True, deadline, tmp_path, records.__setitem__, lambda stage: []))
    assert {row: record["error"] for row, record in records.items()} == {
        "training": NOT_REACHED,
        "evaluation": NOT_REACHED,
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_stage_leaves_no_pytest(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "pid"
    stage = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        cwd=bundle.ROOT,
        env={**os.environ, "PYTHONPATH": str(bundle.ROOT)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with stage:
        until(lambda: path.exists() and path.read_text().endswith("."))
        pytest_process = psutil.Process(int(path.read_text().rstrip(".")))
        try:
            stage.send_signal(number)
            stage.wait()
            until(lambda: not is_running(pytest_process), timeout_s=10.0)
        finally:
            if is_running(pytest_process):
                pytest_process.kill()


def is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
