"""How scripts end: the state and the reason of the run say it, and the script's own hooks run as before."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import callboard
from tests.client.support import Target
from tests.support.waiting import PATIENCE_S

pytestmark = [pytest.mark.service, pytest.mark.long]

ROOT = Path(__file__).parents[2]

# Background jobs of a shell ignore it; so would their children.
BEGIN = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import callboard
run = callboard.init(algorithm="a", environment="e")
run.log({"a/b": 1.0}, agent_steps=1)
print(run.id, flush=True)
"""


@contextmanager
def script(code: str, begin: str = BEGIN) -> Iterator["subprocess.Popen[str]"]:
    """A script that has started a run."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", begin + code],
        env=os.environ | {"PYTHONPATH": str(ROOT / "client")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(target: Target, code: str, status: int, *, begin: str = BEGIN) -> tuple[str, str]:
    """State and reason of the run of a script that ends with this exit status."""
    with script(code, begin) as process:
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, errors
    run = target.run(output.split()[0])
    assert len(target.points(run["id"])["a/b"]) >= 1
    return run["state"], run["state_reason"]


REPORTED = "its script reports finished"
HOOK = "sys.excepthook = lambda kind, error, trace: sys.stderr.write('mine')\n1 / 0"
ENDS = [
    ("", 0, ("finished", REPORTED)),
    ("sys.exit()", 0, ("finished", REPORTED)),
    ("try: sys.exit(3)\nexcept SystemExit: pass", 0, ("finished", REPORTED)),
    ("try: 1 / 0\nexcept ZeroDivisionError: pass", 0, ("finished", REPORTED)),
    ("sys.exit(3)", 3, ("failed", "exit status 3")),
    ("sys.exit('no data')", 1, ("failed", "no data")),
    ("import argparse\nargparse.ArgumentParser().error('no such option')", 2, ("failed", "exit status 2")),
    ("def main():\n    raise ValueError('first\\nlast')\nmain()", 1, ("failed", "ValueError: last")),
    (HOOK, 1, ("failed", "ZeroDivisionError: division by zero")),
    ("with run: raise SystemExit(3)", 3, ("failed", "exit status 3")),
    ("run.flush()\nos._exit(0)", 0, ("running", "trained elsewhere")),  # and lost after a minute
]


@pytest.mark.parametrize(("code", "status", "end"), ENDS, ids=range(len(ENDS)))
def test_run_ends_as_its_script_does(target: Target, code: str, status: int, end: tuple[str, str]) -> None:
    assert ended(target, code, status) == end


INTERRUPTED = "interrupted from the keyboard (SIGINT)"
# Short sleeps: a signal between the interpreter's last look and the system call ends no sleep early.
SLEEP = "print('set', flush=True)\nwhile True:\n    time.sleep(0.1)"
BUSY = """
print("set", flush=True)
step = 1
while True:
    step += 1
    run.log({"a/b": step}, agent_steps=step)
"""
ASYNC = """
import asyncio
async def train():
    with run:
        print('set', flush=True)
        while True: await asyncio.sleep(0.1)
asyncio.run(train())
"""


def handling(handler: str) -> str:
    """The begin of a script that handles SIGTERM."""
    return BEGIN.replace("import callboard", f"import callboard\nsignal.signal(signal.SIGTERM, {handler})")


SIGNALS = [
    (BEGIN, SLEEP, signal.SIGTERM, -signal.SIGTERM, "ended by SIGTERM"),
    (BEGIN, BUSY, signal.SIGTERM, -signal.SIGTERM, "ended by SIGTERM"),
    (BEGIN, SLEEP, signal.SIGINT, -signal.SIGINT, INTERRUPTED),
    (BEGIN, ASYNC, signal.SIGINT, -signal.SIGINT, "CancelledError"),
    (handling("lambda *_: sys.exit(1)"), SLEEP, signal.SIGTERM, 1, "ended by SIGTERM"),
    (handling("lambda *_: 1 / 0"), BUSY, signal.SIGTERM, 1, "ended by SIGTERM (ZeroDivisionError: "),
]


@pytest.mark.parametrize(("begin", "code", "number", "status", "reason"), SIGNALS, ids=range(len(SIGNALS)))
def test_script_that_a_signal_ends_is_stopped_and_can_be_resumed(
    target: Target, begin: str, code: str, number: int, status: int, reason: str
) -> None:
    with script(code, begin) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        assert process.stdout.readline() == "set\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, errors
    run = target.run(run_id)
    assert run["state"] == "stopped"
    assert run["state_reason"].startswith(reason)
    with callboard.init(id=run_id) as resumed:
        resumed.log({"a/b": 5.0}, agent_steps=10**9)
    assert target.run(run_id)["state"] == "finished"
    values = [float(row["value"]) for row in target.points(run_id)["a/b"]]
    assert values == [*map(float, range(1, len(values))), 5.0], "each once"


ANYWHERE = """
import callboard.background

def handle(frame, event, argument):  # as a signal that comes at this line
    if event == "line":
        run.text("from a handler")
    return handle

callboard.background.WAKING_ROWS = 1
sys.settrace(handle)
run.log({"a/b": 2.0}, agent_steps=2)
sys.settrace(None)
"""


def test_handler_may_log_wherever_it_interrupts_a_call_to_log(target: Target) -> None:
    assert ended(target, ANYWHERE, 0)[0] == "finished"


CHILD = """
import multiprocessing
run.flush()
for _ in range(3):  # each at once, before it has done anything
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    child.terminate()
    child.join()
    assert child.exitcode == -signal.SIGTERM
other = os.fork()
if not other:
    sys.exit(7)
assert os.waitpid(other, 0)[1] >> 8 == 7
"""


def test_signal_and_status_of_a_child_do_not_end_the_run(target: Target) -> None:
    assert ended(target, CHILD, 0) == ("finished", REPORTED)


IN_CHILD = """
import multiprocessing
import callboard
def train():
    run = callboard.init(algorithm="a", environment="e")
    print(run.id, flush=True)
    run.log({{"a/b": 1.0}}, agent_steps=1)
    {last_line}
child = multiprocessing.get_context("fork").Process(target=train)
child.start()
child.join()
"""


@pytest.mark.parametrize(
    ("last_line", "end"),
    [("", ("finished", REPORTED)), ("raise ValueError('no data')", ("failed", "ValueError: no data"))],
)
def test_run_of_a_child_of_multiprocessing_ends_with_it(
    target: Target, last_line: str, end: tuple[str, str]
) -> None:
    assert ended(target, "", 0, begin=IN_CHILD.format(last_line=last_line)) == end
