"""`make test`'s stages and retry, each on a small tree of tests of its own and a real pytest."""

import sys
from pathlib import Path

import pytest

from tests.gate import DISTRIBUTED, run_gate, run_long
from tests.support.stages import sample, stage_of

pytestmark = pytest.mark.service  # it starts pytest

PASSES = [sys.executable, "-c", "print('checked')"]
FAILS = [sys.executable, "-c", "raise SystemExit('not formatted')"]
ONCE = """
from pathlib import Path

def times(name):
    with open(f"{name}.runs", "a") as runs:
        runs.write("x")
    return len(Path(f"{name}.runs").read_text())
"""
FAILS_ONCE = f"{ONCE}\ndef test_it():\n    assert times('it') > 1, 'the first time'\n"


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tree of tests, the current folder; pytest in it knows no configuration and few plug-ins."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin,pytest_timeout")
    return tmp_path


def write(tree: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


def runs(tree: Path) -> int:
    """How often `test_it` ran."""
    return len((tree / "it.runs").read_text())


def last_line(capfd: pytest.CaptureFixture[str]) -> str:
    return capfd.readouterr().out.splitlines()[-1]


def test_no_retry_when_all_pass(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tree, {"test_a.py": f"{ONCE}\ndef test_it():\n    times('it')\n"})
    assert run_gate({"tests": ["-n2"]}, PASSES) == 0
    printed = capfd.readouterr().out
    assert "==> tests" in printed
    assert "checked" in printed
    assert "flaky" not in printed
    assert runs(tree) == 1


@pytest.mark.parametrize("arguments", [["-n2"], []])
def test_passes_at_the_second_try(
    tree: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    write(tree, {"test_a.py": FAILS_ONCE, "test_b.py": "def test_other(): pass"})
    assert run_gate({"tests": arguments}, PASSES) == 0
    *above, last = capfd.readouterr().out.splitlines()
    named = above.index("failed: test_a.py::test_it")
    assert not any("short test summary" in line for line in above[:named])
    assert last == "flaky: test_a.py::test_it"
    again = above[above.index("test_a.py::test_it failed at first:") :]
    assert any("AssertionError: the first time" in line for line in again)
    assert runs(tree) == 2


def test_retry_comes_after_the_last_stage(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tree, {"test_a.py": FAILS_ONCE, "test_b.py": FAILS_ONCE.replace("'it'", "'other'")})
    assert run_gate({"one": ["test_a.py"], "two": ["test_b.py"]}, PASSES) == 0
    printed = capfd.readouterr().out
    assert printed.index("==> one") < printed.index("==> two") < printed.index("==> retry")
    assert printed.splitlines()[-1] == "flaky: test_a.py::test_it, test_b.py::test_it"


def test_own_time_limit_is_a_failure_like_any_other(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    test = (
        f"{ONCE}\nimport signal, pytest\n"
        "@pytest.mark.timeout(0.1)\ndef test_it():\n    if times('it') == 1:\n        signal.pause()\n"
    )
    write(tree, {"test_a.py": test})
    assert run_gate({"tests": ["-n2"]}, PASSES) == 0
    assert last_line(capfd) == "flaky: test_a.py::test_it"


def test_fails_when_a_test_fails_twice(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tree, {"test_a.py": f"{ONCE}\ndef test_it():\n    times('it')\n    assert False\n"})
    assert run_gate({"tests": []}, PASSES) == 1
    assert last_line(capfd) == "make test: a test failed twice"
    assert runs(tree) == 2


CRASH = f"{ONCE}\nimport os\ndef test_it():\n    if times('it') <= 1:\n        os._exit(7)\n"
CRASHES = CRASH.replace("<= 1", "<= 2")
MANY = "import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_other(n): pass\n"
CUT_OFF = "import pytest\ndef test_last():\n    pytest.exit('cut off', returncode=1)\n"
SIX = (
    f"{ONCE}\nimport pytest\n"
    "@pytest.mark.parametrize('n', range(6))\ndef test_it(n):\n    assert times('it') > 6\n"
)


@pytest.mark.parametrize("other", [MANY, FAILS_ONCE.replace("'it'", "'other'")], ids=["passes", "fails once"])
def test_crash_is_printed_and_the_tests_without_a_result_run_again(
    tree: Path, capfd: pytest.CaptureFixture[str], other: str
) -> None:
    write(tree, {"test_a.py": other, "test_b.py": CRASH, "test_c.py": MANY})
    assert run_gate({"tests": ["-n2", *DISTRIBUTED]}, PASSES) == 0
    printed = capfd.readouterr().out
    assert "crashed: a test process ended with status 7" in printed
    assert "tests without a result" in printed
    assert ("flaky: test_a.py::test_it" in printed) == (other != MANY)
    assert runs(tree) == 2


@pytest.mark.parametrize(
    ("files", "arguments", "reason"),
    [
        pytest.param({"test_a.py": SIX}, [], "6 tests failed, at most 5 are retried", id="six"),
        pytest.param(
            {"test_a.py": MANY, "test_b.py": CRASHES, "test_c.py": MANY},
            ["-n2", *DISTRIBUTED],
            "a test process ended with status 7",
            id="two crashes",
        ),
        pytest.param(
            {"test_a.py": FAILS_ONCE, "test_b.py": CUT_OFF},
            [],
            "1 selected tests have no result",
            id="cut off",
        ),
        pytest.param(
            {"tests/backend/coordination/test_claims.py": FAILS_ONCE},
            [],
            "may be a race in the product",
            id="race",
        ),
        pytest.param(
            {"tests/backend/runs/test_repository.py": FAILS_ONCE},
            [],
            "may be a race in the product",
            id="SQL",
        ),
    ],
)
def test_not_retried(
    tree: Path, capfd: pytest.CaptureFixture[str], files: dict[str, str], arguments: list[str], reason: str
) -> None:
    write(tree, files)
    assert run_gate({"tests": arguments}, PASSES) == 1
    printed = capfd.readouterr().out
    assert printed.splitlines()[-1].startswith("make test: tests failed; not retried: ")
    assert reason in printed.splitlines()[-1]
    assert "==> retry" not in printed


@pytest.mark.parametrize("arguments", [["-n2"], []])
def test_not_retried_after_an_error_of_collection(
    tree: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    write(tree, {"test_a.py": FAILS_ONCE, "test_b.py": "import nothing_of_this_name"})
    assert run_gate({"tests": ["--continue-on-collection-errors", *arguments]}, PASSES) == 1
    assert "test_b.py could not be collected" in last_line(capfd)


def test_fails_when_nothing_is_selected(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tree, {"test_a.py": FAILS_ONCE})
    assert run_gate({"tests": ["-k", "nothing"]}, PASSES) == 1
    assert "exit code 5" in last_line(capfd)


def test_failed_check_ends_the_gate_after_the_first_stage(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tree, {"test_a.py": FAILS_ONCE})
    assert run_gate({"one": [], "two": []}, FAILS) == 1
    printed = capfd.readouterr().out
    assert "not formatted" in printed
    assert "==> two" not in printed
    assert printed.splitlines()[-1] == "make test: check failed"


def test_long_tests_continue_after_a_failure_and_end_with_the_command_that_repeats_it(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(
        tree, {"test_a.py": f"{ONCE}\ndef test_fails():\n    assert 0\n\ndef test_it():\n    times('it')\n"}
    )
    assert run_long([]) == 1
    assert runs(tree) == 1
    assert last_line(capfd).split() == [".venv/bin/pytest", "test_a.py::test_fails"]


def test_long_tests_pass_without_a_failure(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tree, {"test_a.py": "def test_it():\n    pass\n"})
    assert run_long([]) == 0
    assert "repeat" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("marks", "stage"),
    [
        ([], "tests"),
        (["service", "learning"], "tests"),
        (["browser"], "browser"),
        (["browser", "service"], "browser"),
        (["browser", "long"], "long"),
        (["long", "benchmark"], "benchmark"),
    ],
)
def test_each_test_belongs_to_one_stage(marks: list[str], stage: str) -> None:
    assert stage_of("tests/browser/test_a.py::test_it", marks) == stage


def test_browser_test_that_no_stage_would_collect_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^tests/cli/test_a.py::test_it: tests that need a browser are in"):
        stage_of("tests/cli/test_a.py::test_it", ["browser"])


def test_sample_leaves_every_other_case_to_the_long_tests() -> None:
    kept, long, last = sample(["a", ("b", 1), "c"], 0, 2)
    assert (kept, last) == ("a", "c")
    assert (long.values, [mark.name for mark in long.marks]) == (("b", 1), ["long"])
    with pytest.raises(ValueError, match="there are 1 cases"):
        sample(["a"], 1)
