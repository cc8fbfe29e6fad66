"""No process outlives the one it works for."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

CHILD = (
    "import os; from workers.engine.lifeline import become_helper; "
    "become_helper(os.getppid()); print('ready', flush=True); {wait}"
)
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
WAIT = "import time; time.sleep(600)"


def test_a_helper_dies_with_its_engine_even_when_that_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD.format(wait=WAIT)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        helper = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    psutil.wait_procs([helper], timeout=10)
    assert not helper.is_running() or helper.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_helper_leaves_signals_to_the_engine(which: signal.Signals) -> None:
    wait = f"import os, signal; os.kill(os.getpid(), {int(which)}); print('still here', flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(wait=wait)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["ready", "still here"]


SLOW_ENGINE = """
import sys, time
from pathlib import Path
while not Path(sys.argv[2], "go").exists():
    time.sleep(0.01)
from workers.engine.__main__ import main
sys.exit(main())
"""
WORKER = """
import sys, threading
from pathlib import Path
from workers.engine_process import EngineProcess
folder = Path(sys.argv[1])
engine = EngineProcess(
    ["evaluate", str(folder), "--checkpoint", "none"],
    output=folder / "said.log", engine=[sys.executable, "-c", sys.argv[2]],
)
print(engine.pid, flush=True)
threading.Event().wait()
"""


def test_an_engine_whose_worker_died_while_it_still_began_does_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(tmp_path), SLOW_ENGINE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        engine = psutil.Process(int(worker.stdout.readline()))
        worker.kill()
    (tmp_path / "go").touch()
    psutil.wait_procs([engine], timeout=60)
    assert not engine.is_running()
    assert (tmp_path / "said.log").read_text() == ""
