"""The benchmark's arguments, and the script that takes them."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu.arguments import STAGES, parse
from benchmarks.gpu.results import Results

pytestmark = pytest.mark.long


def test_arguments_have_defaults() -> None:
    arguments = parse(["--out", "new"])
    assert (arguments.device, arguments.short, arguments.only, arguments.budget_s) == (
        "cuda",
        False,
        None,
        480.0,
    )
    assert parse(["--out", "new", "--only", *STAGES]).only == list(STAGES)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "the following arguments are required: --out"),
        (["--out", "file"], "argument --out: file is a file"),
        (["--out", "full"], "argument --out: full is not empty"),
        (["--out", "file/sub"], "argument --out: file is a file; name a new folder"),
        (["--out", "file/sub/deeper"], "argument --out: file is a file; name a new folder"),
        (["--out", "new", "--budget-s", "-1"], "argument --budget-s: between 0 and 86400 seconds, got -1"),
        (["--out", "new", "--device", "xyz"], "argument --device: invalid choice: 'xyz'"),
        (["--out", "new", "--only", "foo"], "argument --only: invalid choice: 'foo'"),
        (["--out", "new", "--only", "tests", "profile"], "argument --only: profile needs throughput"),
        (["--out", "new", "--wheels", "nowhere"], "argument --wheels: nowhere does not exist"),
        (["--out", "new", "--wheels", "file"], "argument --wheels: file is not a folder"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("full").mkdir()
    Path("full/results.json").touch()
    with pytest.raises(SystemExit) as end:
        parse(arguments)
    assert end.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.service
def test_help_installs_nothing(tmp_path: Path) -> None:
    """The check before the installation ends the script with its own exit code."""
    command = [sys.executable, "-m", "benchmarks.gpu.packages", str(tmp_path), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "--budget-s" in done.stdout
    assert "--wheels FOLDER" in done.stdout


@pytest.mark.parametrize(
    ("record", "has_failed"),
    [
        ({"passed": True}, False),
        ({"passed": 3, "failed": 0}, False),
        ({"passed": 3, "failed": 1}, True),
        ({"passed": False}, True),
        ({"error": "not reached"}, True),
    ],
)
def test_failures_are_reported(record: dict[str, object], has_failed: bool, tmp_path: Path) -> None:
    results = Results(tmp_path, {})
    results.add("tests", "pytest", record)
    assert results.has_failures() is has_failed
    results.end_stage("tests", 1.0, "RuntimeError: it broke")
    assert results.has_failures()
