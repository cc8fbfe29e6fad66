"""The law of ends: however a script ends, its run says how.

A script is a way to end (an exit status, an exception or none) within blocks that pass it on, catch it or
translate it, and within the run itself or not. Each is executed as a file by an interpreter of its own; these
are forked from one that has imported the package, which is what takes long.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.client.support import Target

pytestmark = [pytest.mark.service, pytest.mark.long]

ROOT = Path(__file__).parents[2]

N_SCRIPTS = 40
"""Scripts of one example."""

MANY = """
import json, os, sys
import callboard
for code in json.load(open(sys.argv[1])):
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    os._exit(0)
run = callboard.init(algorithm="a", environment="e")
run.log({"a/b": 1.0}, agent_steps=1)
print(run.id, flush=True)
exec(compile(code, "case", "exec"))
"""


@dataclass(frozen=True)
class Script:
    """A script, and how it ends."""

    code: str
    status: int = 0
    """The exit status of its process."""
    end: tuple[str, str] = ("finished", "its script reports finished")
    """State and reason of its run, unless that has ended before."""
    ended: tuple[str, str] | None = None
    """State and reason of its run, once that has ended."""
    is_error: bool = False
    """Whether an exception that is no SystemExit leaves it."""


def exits() -> st.SearchStrategy[Script]:
    """Scripts that exit with a status."""
    by_signal = {128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    numbers = st.integers(-300, 300).filter(lambda number: number not in by_signal)
    texts = st.text("abc xyz", min_size=1).map(str.strip).filter(bool)
    values = st.one_of(st.none(), st.booleans(), st.integers(0, 5), numbers, texts)
    return st.builds(exit_with, st.sampled_from(("sys.exit", "exit", "raise SystemExit")), values)


def exit_with(way: str, value: int | str | None) -> Script:
    """The script that exits in a way with a value."""
    code = f"{way}({value!r})"
    if value is None or value == 0:
        return Script(code)
    if isinstance(value, str):
        return Script(code, 1, ("failed", value))
    return Script(code, value & 0xFF, ("failed", f"exit status {int(value)}"))


def errors() -> st.SearchStrategy[Script]:
    """Scripts that an exception ends."""
    kinds = st.sampled_from(("ValueError", "ZeroDivisionError", "KeyError", "MemoryError", "GeneratorExit"))
    return st.builds(error_of, kinds, st.integers(0, 9))


def error_of(kind: str, number: int) -> Script:
    """The script that raises an exception."""
    return Script(f"raise {kind}({number})", 1, ("failed", f"{kind}: {number}"), is_error=True)


def in_function(script: Script) -> Script:
    """It is the body of a function, which has another name for the run."""
    return replace(script, code=f"def main():\n    mine = run\n{indent(script.code, '    ')}\nmain()")


def with_finally(script: Script) -> Script:
    """Something else is done at last."""
    return replace(script, code=f"try:\n{indent(script.code, '    ')}\nfinally:\n    done = True")


def caught(script: Script) -> Script:
    """It goes on after whatever has ended it."""
    code = f"try:\n{indent(script.code, '    ')}\nexcept BaseException:\n    pass"
    return Script(code, ended=script.ended)


def translated(script: Script) -> Script:
    """Another exception is raised from its own."""
    code = (
        f"try:\n{indent(script.code, '    ')}\nexcept Exception as error:\n    raise OSError('x') from error"
    )
    if not script.is_error or "GeneratorExit" in script.code:
        return replace(script, code=code)
    return replace(script, code=code, end=("failed", "OSError: x"))


def within_run(script: Script) -> Script:
    """The run ends with it."""
    if script.ended is not None:
        return script
    return replace(script, code=f"with run:\n{indent(script.code, '    ')}", ended=script.end)


BLOCKS = (in_function, with_finally, caught, translated, within_run)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Scripts within up to four blocks."""
    script = draw(st.one_of(st.just(Script("pass")), exits(), exits(), errors()))
    for block in draw(st.lists(st.sampled_from(BLOCKS), max_size=4)):
        script = block(script)
    return script


@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],  # an example has many scripts, and each that fails is shown
    suppress_health_check=[*HealthCheck],
)
@given(cases=st.lists(scripts(), min_size=N_SCRIPTS, max_size=N_SCRIPTS))
def test_run_ends_as_its_script_does(
    target: Target, tmp_path_factory: pytest.TempPathFactory, cases: list[Script]
) -> None:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "many.py").write_text(MANY, "utf-8")
    (folder / "cases.json").write_text(json.dumps([case.code for case in cases]), "utf-8")
    done = subprocess.run(
        [sys.executable, str(folder / "many.py"), str(folder / "cases.json")],
        env=os.environ | {"PYTHONPATH": str(ROOT / "client")},
        capture_output=True,
        text=True,
        check=True,
    )
    ids, statuses = done.stdout.split()[::2], done.stdout.split()[1::2]
    assert len(ids) == len(statuses) == len(cases), done.stderr
    wrong = []
    for case, run_id, status in zip(cases, ids, statuses, strict=True):
        run = target.run(run_id)
        got = int(status), (run["state"], run["state_reason"])
        if got != (case.status, case.ended or case.end):
            wrong.append((case, got))
    assert not wrong
