"""No process outlives the one it works for."""

import signal
import subprocess
import sys

import psutil
import pytest

CHILD = (
    "from workers.engine.lifeline import become_helper; become_helper(); print('ready', flush=True); {wait}"
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
