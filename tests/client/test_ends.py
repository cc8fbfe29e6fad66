"""How scripts end: the state and the reason of the run say it truly."""

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
from tests.support.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.service, pytest.mark.long]

ROOT = Path(__file__).parents[2]

# Background jobs of a shell ignore the first, and what nohup starts the second; so would their children.
DEFAULTS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
BEGIN = """
import os, signal, sys, time
import callboard
run = callboard.init(algorithm="a", environment="e")
run.log({"a/b": 1.0}, agent_steps=1)
print(run.id, flush=True)
"""


@contextmanager
def script(code: str, begin: str = BEGIN) -> Iterator["subprocess.Popen[str]"]:
    """A script that has started a run."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "client")}
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", DEFAULTS + begin + code],
        env=environment,
        stdin=subprocess.PIPE,
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


def stopped(target: Target, code: str, number: int, status: int) -> tuple[str, str]:
    """State and reason of the run of a script that gets a signal, and ends with this exit status."""
    with script(code) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        if "'set'" in code:  # what the signal shall interrupt has begun
            assert process.stdout.readline() == "set\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, errors
    run = target.run(run_id)
    return run["state"], run["state_reason"]


FINISHED = [
    ("", 0),
    ("sys.exit()", 0),
    ("sys.exit(0)", 0),
    ("raise SystemExit", 0),
    ("try: sys.exit(3)\nexcept SystemExit: pass", 0),
    ("try: 1 / 0\nexcept ZeroDivisionError: pass", 0),
]

FAILED = [
    ("sys.exit(3)", 3, "exit status 3"),
    ("exit(4)", 4, "exit status 4"),
    ("sys.exit('no data')", 1, "no data"),
    ("def main():\n    mine = run\n    sys.exit(5)\nmain()", 5, "exit status 5"),
    ("import argparse\nargparse.ArgumentParser().error('no such option')", 2, "exit status 2"),
    ("1 / 0", 1, "ZeroDivisionError: division by zero"),
    ("def main():\n    raise ValueError('first\\nlast')\nmain()", 1, "ValueError: last"),
    ("with run: sys.exit(3)", 3, "exit status 3"),
]


@pytest.mark.parametrize(("code", "status"), FINISHED, ids=range(len(FINISHED)))
def test_script_that_ends_normally_has_finished(target: Target, code: str, status: int) -> None:
    assert ended(target, code, status)[0] == "finished"


@pytest.mark.parametrize(("code", "status", "reason"), FAILED, ids=range(len(FAILED)))
def test_script_that_ends_by_an_exception_or_another_exit_status_has_failed(
    target: Target, code: str, status: int, reason: str
) -> None:
    assert ended(target, code, status) == ("failed", reason)


REPORTED = "its script reports finished"
RAISED = [
    ("raise SystemExit(0)", 0, ("finished", REPORTED)),
    ("def main():\n    raise SystemExit(5)\nmain()", 5, ("failed", "exit status 5")),
    ("sys.stderr.flush()\nraise SystemExit('no data')", 1, ("failed", "no data")),
    ("try: raise SystemExit(7)\nexcept SystemExit as error: kept = error", 0, ("finished", REPORTED)),
]
"""What a file may raise itself, the exit status of Python, and state and reason of the run."""


CALLED = [
    ("sys.exit()", 0, ("finished", REPORTED)),
    ("try: sys.exit(3)\nexcept SystemExit: pass", 0, ("finished", REPORTED)),
    *((code, status, ("failed", reason)) for code, status, reason in FAILED),
    ("import unittest\nsys.argv[1:] = ['no_such_module']\nunittest.main()", 1, ("failed", "exit status 1")),
]
"""The same for scripts that call `sys.exit`, or end by an exception."""


def ended_file(target: Target, path: Path, code: str, status: int) -> tuple[str, str]:
    """State and reason of the run of a script that is executed as a file."""
    path.write_text(BEGIN + code, "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "client")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    run = target.run(done.stdout.split()[0])
    return run["state"], run["state_reason"]


@pytest.mark.parametrize(("code", "status", "end"), RAISED, ids=range(len(RAISED)))
def test_file_that_raises_system_exit_itself_ends_as_its_status_says(
    target: Target, tmp_path: Path, code: str, status: int, end: tuple[str, str]
) -> None:
    assert ended_file(target, tmp_path / "script.py", code, status) == end


@pytest.mark.parametrize(("code", "status", "end"), CALLED, ids=range(len(CALLED)))
def test_file_that_calls_sys_exit_or_raises_ends_as_its_status_says(
    target: Target, tmp_path: Path, code: str, status: int, end: tuple[str, str]
) -> None:
    assert ended_file(target, tmp_path / "script.py", code, status) == end


THREAD = """
import threading
def train(steps=3, error=None):
    for step in range(2, steps):
        run.log({"a/b": step}, agent_steps=step)
    if error is not None:
        raise error
def in_thread(*arguments):
    thread = threading.Thread(target=train, args=arguments, name="trainer")
    thread.start()
    thread.join()
"""
DIES = "in_thread(5, ValueError('no\\nnumber'))"
TRAINER = "ValueError: number, in trainer"
THREADS = [
    (DIES, ("failed", TRAINER)),
    (f"{DIES}\nrun.text('summary')\nrun.close()", ("failed", TRAINER)),
    (f"with run: {DIES}", ("failed", TRAINER)),
    (f"in_thread()\n{DIES}\nrun.close('finished')", ("finished", REPORTED)),
    (f"{DIES}\nin_thread(9)", ("finished", REPORTED)),
    (f"{DIES}\ntrain(9)", ("finished", REPORTED)),
    ("train(5)\nin_thread(0, ValueError('of a helper'))", ("finished", REPORTED)),
    ("in_thread(4, SystemExit(3))", ("finished", REPORTED)),
    ("in_thread(4)", ("finished", REPORTED)),
]


@pytest.mark.parametrize(("code", "end"), THREADS, ids=range(len(THREADS)))
def test_exception_that_ends_the_thread_that_trains_fails_the_run(
    target: Target, code: str, end: tuple[str, str]
) -> None:
    assert ended(target, THREAD + code, 0) == end
    [run] = target.runs()
    died = [line for line in target.lines(run["id"]) if "that nothing has caught: ValueError" in line]
    assert len(died) == code.count("ValueError")


STREAM = """
class Tee:
    def __init__(self, stream): self.stream = stream
    def write(self, text): return self.stream.write(text)
    def flush(self): self.stream.flush()
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_file_that_replaces_a_stream_later_ends_as_its_status_says(
    target: Target, tmp_path: Path, stream: str
) -> None:
    code = f"{STREAM}sys.{stream} = Tee(sys.{stream})\nraise SystemExit(3)"
    assert ended_file(target, tmp_path / "script.py", code, 3) == ("failed", "exit status 3")


TYPO = """
import sys, code
shell = code.InteractiveConsole()
shell.runsource("typo")
shell.runsource("import callboard")
shell.runsource("run = callboard.init(algorithm='a', environment='e')")
shell.runsource("run.log({'a/b': 1.0}, agent_steps=1)")
shell.runsource("print(run.id, flush=True)")
"""


def test_error_before_the_run_began_fails_nothing(target: Target) -> None:
    assert ended(target, "", 0, begin=TYPO)[0] == "finished"
    assert ended(target, "shell.runsource('1 / 0')", 0, begin=TYPO)[0] == "failed"


INTERRUPTED = "interrupted from the keyboard (SIGINT)"
# Short sleeps: a signal between the interpreter's last look and the system call ends no sleep early.
SLEEP = "while True:\n    time.sleep(0.5)"
BUSY = """
step = 1
while True:
    step += 1
    run.log({"a/b": step}, agent_steps=step)
"""
CATCHES = (
    "try:\n    print('set', flush=True)\n    while True: time.sleep(0.5)\nexcept KeyboardInterrupt: pass"
)
ASYNC = """
import asyncio
async def train():
    with run:
        print('set', flush=True)
        while True: await asyncio.sleep(0.5)
asyncio.run(train())
"""
EXITS = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\nprint('set', flush=True)\n" + SLEEP
LOGS = (
    """
def save(number, frame):
    run.text("saved by the script's own handler")
    raise TimeoutError("preempted")
signal.signal(signal.SIGTERM, save)
print("set", flush=True)
"""
    + BUSY
)
FLAG = """
came = []
signal.signal(signal.SIGHUP, lambda number, frame: came.append(number))
print("set", flush=True)
while not came: time.sleep(0.01)
run.text("the loop has ended")
"""

SIGNALS = [
    (SLEEP, signal.SIGTERM, -signal.SIGTERM, "ended by SIGTERM"),
    (BUSY, signal.SIGTERM, -signal.SIGTERM, "ended by SIGTERM"),
    (SLEEP, signal.SIGHUP, -signal.SIGHUP, "ended by SIGHUP"),
    (SLEEP, signal.SIGINT, -signal.SIGINT, INTERRUPTED),
    (CATCHES, signal.SIGINT, 0, INTERRUPTED),
    (ASYNC, signal.SIGINT, -signal.SIGINT, f"{INTERRUPTED} (CancelledError)"),
]


@pytest.mark.parametrize(("code", "number", "status", "reason"), SIGNALS, ids=range(len(SIGNALS)))
def test_script_that_a_signal_ends_is_stopped_with_the_signal_as_its_reason(
    target: Target, code: str, number: int, status: int, reason: str
) -> None:
    assert stopped(target, code, number, status) == ("stopped", reason)


OWN = [
    (EXITS, signal.SIGTERM, 1, "ended by SIGTERM", None),
    (
        LOGS,
        signal.SIGTERM,
        1,
        "ended by SIGTERM (TimeoutError: preempted)",
        "saved by the script's own handler",
    ),
    (FLAG, signal.SIGHUP, 0, "ended by SIGHUP", "the loop has ended"),
]


@pytest.mark.parametrize(("code", "number", "status", "reason", "line"), OWN, ids=range(len(OWN)))
def test_handlers_of_the_script_run_and_its_run_can_be_resumed(
    target: Target, code: str, number: int, status: int, reason: str, line: str | None
) -> None:
    with script(code) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        assert process.stdout.readline() == "set\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, errors
    run = target.run(run_id)
    assert (run["state"], run["state_reason"]) == ("stopped", reason)
    assert line is None or line in target.lines(run_id)
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


def test_script_that_is_killed_is_not_said_to_have_ended(target: Target) -> None:
    assert ended(target, "run.flush()\nos._exit(0)", 0)[0] == "running", "lost after a minute"
    with script(SLEEP) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        process.kill()
        process.wait(PATIENCE_S)
    assert target.run(run_id)["state"] == "running"


CHILD = """
import multiprocessing
run.flush()
for _ in range(10):  # each at once, before it has done anything
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    child.terminate()
    child.join()
    assert child.exitcode == -signal.SIGTERM
other = os.fork()
if not other:
    sys.exit(7)
assert os.waitpid(other, 0)[1] >> 8 == 7
time.sleep(0.2)
"""


def test_signal_and_status_of_a_child_do_not_end_the_run(target: Target) -> None:
    assert ended(target, CHILD, 0)[0] == "finished"


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


IGNORES = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + BEGIN


def test_ignored_signal_stays_ignored(target: Target) -> None:
    with script("sys.stdin.readline()", IGNORES) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        process.send_signal(signal.SIGHUP)
        process.communicate("\n", timeout=PATIENCE_S)
    assert process.returncode == 0
    until(lambda: target.run(run_id)["state"] == "finished")
