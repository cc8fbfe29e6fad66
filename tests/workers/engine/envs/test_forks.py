"""Copies of an environment in forked processes: how they end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from backend.specs.environments.small import CatchConfig
from tests.support.waiting import until
from workers.engine.envs.base import Step
from workers.engine.envs.forks import Forks
from workers.engine.envs.small import CatchEnv
from workers.engine.processes.child import ChildDiedError, ChildFailedError

pytestmark = pytest.mark.service


class _Stumbling(CatchEnv):
    """Fails at action 2."""

    def step(self, action: int, out: NDArray[Any]) -> Step:
        if action == 2:
            raise ValueError("stumbled")
        return super().step(action, out)


def _forks(n: int, build: Callable[[CatchConfig], CatchEnv] = CatchEnv) -> Forks:
    env = build(CatchConfig())
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(5, observation)
    return Forks(env, observation, n)


def test_closed_forks_have_exited_and_are_reaped() -> None:
    forks = _forks(3)
    pids = list(forks.pids)
    forks.step([2, 0], [0, 1])
    assert len(pids) == 3
    forks.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_exception_in_a_fork_is_raised_with_its_traceback() -> None:
    with closing(_forks(2, _Stumbling)) as forks:
        pids = list(forks.pids)
        with pytest.raises(ChildFailedError, match=r"(?s)in step.*ValueError: stumbled"):
            forks.step([0, 1], [0, 2])
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_killed_fork_is_reported_with_its_signal() -> None:
    with closing(_forks(3)) as forks:
        first, *others = forks.pids
        for pid in others:
            os.kill(pid, signal.SIGKILL)
        # Of several deaths each is reported for its own copy.
        for number in (1, 2):
            with pytest.raises(ChildDiedError, match=f"copy {number} was killed by signal 9"):
                forks.step([0, number], [0, 0])
        assert forks.pids == [first]


PARENT = """
import time
from tests.workers.engine.envs.test_forks import _forks
print(*_forks(3).pids, flush=True)
time.sleep(600)
"""


def test_forks_of_a_killed_parent_exit() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            processes = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
            assert len(processes) == 3
        finally:
            parent.kill()
    until(lambda: not any(process.is_running() for process in processes))
