"""Scripts that once lost data, ended a training or misread its end, against a whole installation."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import short_folder
from tests.support.installation import Installation, installation
from tests.support.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.service, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]

BEGIN = """
import logging, math, os, signal, subprocess, sys, time
import numpy as np
import callboard
logging.basicConfig(level=logging.WARNING)
def begin(**fields):
    return callboard.init(**({"algorithm": "m", "environment": "e"} | fields))
def values(run, metric):
    with callboard.connect() as client:
        return client.run(run.id).series(metric).value.tolist()
def state(run_id):
    with callboard.connect() as client:
        return client.run(run_id).state
"""

RESUMES_FROM_AN_OLDER_CHECKPOINT = """
run = begin()
for step in range(0, 10_001, 10):
    run.log({"loss/a": step}, agent_steps=step)
    if step % 100 == 0:
        run.episode(return_=step / 100, length=100, agent_steps=step)
run.close()
unaware = callboard.init(id=run.id)
unaware.log({"loss/a": 0.5}, agent_steps=6_010)
unaware.flush()
assert unaware.n_dropped == 1
unaware.close()
run = callboard.init(id=run.id, rewind_to=6_000)
for step in range(6_010, 12_001, 10):
    run.log({"loss/a": step + 0.5}, agent_steps=step)
run.close()
assert run.n_dropped == 0
stored = values(run, "loss/a")
assert sum(value % 10 == 0.5 for value in stored) == 600, len(stored)
assert len(stored) == 1_201
"""

MANY_METRICS = """
with begin() as run:
    for first in range(0, 5_003, 1_000):
        last = min(first + 1_000, 5_003)
        run.log({f"many/m{at:05}": float(at) for at in range(first, last)}, agent_steps=1)
    for at in range(3):
        run.episode(float(at), 10)
    run.flush()
    assert run.n_dropped == 3, run.dropped
with callboard.connect() as client:
    stored = client.run(run.id).data
assert (stored["episodes"], stored["score"], stored["best_return"]) == (3, 1.0, 2.0), stored
"""

CALLS_THAT_ENDED_A_TRAINING = """
import gymnasium
run = begin()
run.text("")
run.log({"a/b": 1.0}, agent_steps=1e6)
run.log({"a/b": 1.0}, agent_steps=np.float64(1e6))
run.episode(return_=float("nan"), length=5)
run.episode(return_=1.0, length=12.0)
run.episode(return_=np.array([3.0]), length=np.array([7]))
run.video(np.zeros((2_700, 210, 160, 3), np.uint8))
run.log({"a/b": 10**400}, agent_steps=1_000_001)
class Nan(gymnasium.RewardWrapper):
    def reward(self, reward):
        return float("nan")
env = callboard.RecordReturns(Nan(gymnasium.make("CartPole-v1")), run)
env.reset(seed=0)
for _ in range(300):
    if any(env.step(env.action_space.sample())[2:4]):
        env.reset()
for k in (dict(return_=1.0, length=0), dict(return_=1.0, length=-1), dict(return_=5.0, length=10**16),
          dict(return_=np.array([1.0, 2.0]), length=5), dict(return_=True, length=True)):
    run.episode(**k)
last_return = None
for step in range(1, 1_000):
    logged = {"loss": 0.1} if step < 500 else {"loss": 0.1, "last_return": last_return}
    run.log(logged, agent_steps=2_000_000 + step)
assert run.flush()
assert run.dropped == {"no number: None": 500}, run.dropped
run.close()
assert values(run, "a/b") == [1.0, 1.0, math.inf]
assert values(run, "loss") == [0.1] * 999
"""

VALUES_AT_THE_EDGE = """
import decimal, fractions, torch
run = begin()
given = {
    "f16nan": np.float16("nan"), "f32inf": np.float32("inf"), "ninf": float("-inf"), "list": [1.0],
    "torch": torch.tensor(3.0), "torch1": torch.tensor([3.0]), "torch2": torch.tensor([3.0, 4.0]),
    "grad": torch.tensor(3.0, requires_grad=True), "bf16": torch.tensor(1.5, dtype=torch.bfloat16),
    "decimal": decimal.Decimal("0.1"), "third": fractions.Fraction(1, 3), "true": True, "none": None,
    "npbool": np.bool_(True), "huge": 1e308, "denormal": 5e-324, "nzero": -0.0, "bigint": 10**400,
    "str": "3.0", "complex": 1 + 0j, "f128": np.longdouble("1e400"), "i64": np.int64(7),
    "arr0": np.array(5.0),
}
run.log(given, agent_steps=1)
for step in (
    2**31, np.int64(2**31), 2**31 + 1.9, "3000000000", True, None, -1, torch.tensor(4 * 10**9),
    np.uint64(2**63), 2**53 + 1, 10**15, 10**15 + 1,
):
    run.log({"steps/x": 1.0}, agent_steps=step)
run.flush()
assert run.dropped == {"no number: Tensor of the shape (2,)": 1, "no number: None": 1,
                       "agent steps that decrease": 1}, run.dropped
wanted = {
    "f16nan": math.nan, "f32inf": math.inf, "ninf": -math.inf, "torch": 3.0, "torch1": 3.0, "grad": 3.0,
    "decimal": 0.1, "third": 1 / 3, "true": 1.0, "npbool": 1.0, "huge": 1e308, "denormal": 5e-324,
    "nzero": -0.0, "bigint": math.inf, "str": 3.0, "complex": 1.0, "f128": math.inf, "i64": 7.0,
    "arr0": 5.0, "list": 1.0, "bf16": 1.5,
}
for name, value in wanted.items():
    [stored] = values(run, name)
    assert repr(float(stored)) == repr(value), (name, stored)
run.close()
"""

VECTOR_ENVIRONMENT_FORKS = """
import gymnasium
run = begin()
def make():
    return callboard.RecordReturns(gymnasium.make("CartPole-v1"), run, n_environments=2)
environments = gymnasium.vector.AsyncVectorEnv([make] * 2)
environments.reset(seed=0)
for _ in range(200):
    environments.step(environments.action_space.sample())
environments.close()
run.close()
print("forked")
"""

LOST = """
code = '''import callboard, os
run = callboard.init(algorithm="m", environment="e")
run.log({"a/b": 1}, agent_steps=1)
run.flush()
print(run.id, flush=True)
os._exit(1)'''
run_id = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
with callboard.connect() as client:
    assert client.run(run_id).wait(300, lost_for_s=5).state == "lost"
"""

PREEMPTED = """
code = '''import callboard, sys, time
run = callboard.init(id=sys.argv[1]) if len(sys.argv) > 1 else callboard.init(algorithm="m", environment="e")
print(run.id, flush=True)
step = run.agent_steps
while True:
    step += 1
    run.log({"loss/a": step}, agent_steps=step)
    time.sleep(0.01)'''
def start(*arguments):
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()
def ended(run_id):
    until = time.monotonic() + 120
    while state(run_id) == "running" and time.monotonic() < until:
        time.sleep(0.5)
    return state(run_id)
def steps(run_id):
    with callboard.connect() as client:
        return client.run(run_id).data["agent_steps"]
def stored_after(run_id, first):
    until = time.monotonic() + 120
    while steps(run_id) <= first and time.monotonic() < until:
        time.sleep(0.1)
    assert steps(run_id) > first, run_id
handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
numbers = (*handled, signal.SIGUSR1, signal.SIGKILL)
runs = {number: start() for number in numbers}
for number, (process, run_id) in runs.items():
    stored_after(run_id, 0)
    process.send_signal(number)
for number, (process, run_id) in runs.items():
    process.wait()
    found = ended(run_id)
    assert found == ("stopped" if number in handled else "lost"), (number, found)
before = {number: steps(run_id) for number, (_, run_id) in runs.items()}
resumed = {number: start(run_id) for number, (_, run_id) in runs.items()}
for number, (process, run_id) in resumed.items():
    stored_after(run_id, before[number])
    assert state(run_id) == "running", number
    process.send_signal(signal.SIGINT)
for number, (process, run_id) in resumed.items():
    process.wait()
    assert state(run_id) == "stopped", number
    with callboard.connect() as client:
        series = client.run(run_id).series("loss/a")
    assert series.agent_steps.tolist() == series.value.tolist(), number
    assert len(set(series.value.tolist())) == len(series), number
    assert len(series) == series.agent_steps[-1], number
"""

NO_HOME = """
code = '''import callboard
run = callboard.init(algorithm="m", environment="e")
run.log({"a/b": 1}, agent_steps=1)
run.close()
print(run.id, run.n_dropped)'''
environment = {name: text for name, text in os.environ.items() if name not in ("HOME", "CALLBOARD_HOME")}
prefix = ["unshare", "-U", "--map-user=12345", "--map-group=12345"]
if subprocess.run([*prefix, "true"], capture_output=True).returncode:
    prefix = []
done = subprocess.run([*prefix, sys.executable, "-c", code], env=environment, capture_output=True, text=True)
assert done.stdout.endswith(" 0\\n"), done.stderr
"""

NOTEBOOK = """
try:
    import nbclient, nbformat, ipykernel
except ImportError:
    print("nbclient and ipykernel are not installed")
    sys.exit(0)
def run_of(*cells):
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbclient.NotebookClient(book, timeout=60, allow_errors=True).execute()
    outputs = [output for cell in book.cells for output in cell.outputs]
    return next(output["text"] for output in outputs if output["output_type"] == "stream").strip()
START = "run = callboard.init(algorithm='m', environment='e')\\nprint(run.id)\\n"
LOG = "for step in range(100): run.log({'a/b': step}, agent_steps=step)\\n"
for wanted, *cells in (
    ("finished", "import callboard\\ntypo", START + LOG + "run.flush()"),
    ("finished", "import callboard\\n" + START + LOG, "typo"),
    ("failed", "import callboard\\n" + START, LOG + "1 / 0"),
    ("finished", "import callboard\\n" + START, LOG + "1 / 0", LOG.replace("=step", "=100")),
):
    assert state(run_of(*cells)) == wanted, (wanted, cells)
"""

SCRIPTS = {
    "resumes_from_an_older_checkpoint": (RESUMES_FROM_AN_OLDER_CHECKPOINT, "rewind_to="),
    "many_metrics": (MANY_METRICS, "a run cannot have more metrics"),
    "calls_that_ended_a_training": (CALLS_THAT_ENDED_A_TRAINING, "no number: None"),
    "values_at_the_edge": (VALUES_AT_THE_EDGE, "agent steps that decrease"),
    "vector_environment_forks": (VECTOR_ENVIRONMENT_FORKS, "logged in a forked child process"),
    "lost": (LOST, ""),
    "preempted": (PREEMPTED, ""),
    "no_home": (NO_HOME, ""),
    "notebook": (NOTEBOOK, ""),
}
"""A script, and what it prints on standard error."""


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    with short_folder() as folder, installation(folder / "home") as started:
        yield started


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_ends_as_it_should(running: Installation, tmp_path: Path, name: str) -> None:
    code, message = SCRIPTS[name]
    key = running.home / "command-line-key"
    environment = os.environ | {
        "CALLBOARD_HOME": str(tmp_path / "client"),
        "CALLBOARD_URL": running.url,
        "CALLBOARD_TOKEN": until(lambda: key.read_text("utf-8") if key.is_file() else None),
        "PYTHONPATH": str(ROOT / "client"),
    }
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert message in done.stderr
