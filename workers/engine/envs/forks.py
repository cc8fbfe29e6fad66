"""Copies of an environment, each in a process that is forked from the one that holds it. Needs no torch.

A fork has all of the emulator's memory, so that it goes on exactly as the original would, whatever a saved
state leaves out, and no other emulator has to be loaded. The processes share all memory until one of them
writes to it. A forked process runs nothing but the environment's steps: it exits with its parent, however
that ends, and leaves signals to it.
"""

import gc
import os
import signal
import socket
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from workers.engine.envs.base import Action, Discrete, Env, Step
from workers.engine.processes.child import ChildDiedError, ChildFailedError, become_child
from workers.engine.processes.shared_memory import SharedArrays

_STEP = b"\1"
"""Command, and the answer to it."""
_FAILED = b"\0"
"""Answer: an exception in the process; its traceback follows."""


class _Shared(SharedArrays):
    """What parent and forks share: actions to take, and what came of them."""

    observation_N: NDArray[Any]
    action_N: NDArray[np.int32]
    reward_N: NDArray[np.float64]
    terminated_N: NDArray[np.bool_]
    episode_over_N: NDArray[np.bool_]
    truncated_N: NDArray[np.bool_]
    frames_N: NDArray[np.int32]
    crashed_N: NDArray[np.bool_]
    lives_N: NDArray[np.int32]

    def __init__(self, n: int, env: Env) -> None:
        flags = ((n,), "bool")
        super().__init__(
            {
                "observation_N": ((n, *env.observation_shape), env.observation_dtype.name),
                "action_N": ((n,), "int32"),
                "reward_N": ((n,), "float64"),
                "terminated_N": flags,
                "episode_over_N": flags,
                "truncated_N": flags,
                "frames_N": ((n,), "int32"),
                "crashed_N": flags,
                "lives_N": ((n,), "int32"),
            }
        )


class Forks:
    """An environment of discrete actions n times, in n processes."""

    def __init__(
        self, env: Env, observation: NDArray[Any], n: int, before_fork: Callable[[int], None] = lambda k: None
    ) -> None:
        """Fork the processes. Call it from a thread that outlives them: the kernel kills them with it.

        Args:
            env: the environment; it belongs to the forks from now on.
            observation: its latest one.
            n: number of copies.
            before_fork: called with the number of each copy just before its process is forked, such as to
                change what it will inherit.
        """
        assert isinstance(env.action_space, Discrete)
        self._env = env
        self._shared = _Shared(n, env)
        self._shared.close()  # the file alone: the arrays stay, and copies inherit them
        self.observation_N = self._shared.observation_N
        """The latest observation of each copy."""
        self.observation_N[:] = observation
        self._shared.lives_N[:] = env.lives()
        self._sockets: list[socket.socket] = []
        self._pids: dict[int, int] = {}
        """By the copies' numbers, until they are waited for."""
        try:
            for k in range(n):
                before_fork(k)
                self._fork(k)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> Sequence[int]:
        """Process ids, in the order of the copies, without those that have died."""
        return list(self._pids.values())

    def step(self, numbers: Sequence[int], actions: Sequence[Action] | NDArray[Any]) -> list[Step]:
        """Take a decision in these copies, in their order.

        Raises:
            ChildFailedError: an exception in a process; the message is its traceback.
            ChildDiedError: a process was killed.
        """
        shared = self._shared
        shared.action_N[list(numbers)] = actions
        for k in numbers:
            with suppress(OSError):  # `_await_answer` learns why
                self._sockets[k].send(_STEP)
        for k in reversed(numbers):  # on one core the others are done by then: fewer context switches
            self._await_answer(k)
        return [
            Step(
                reward=float(shared.reward_N[k]),
                terminated=bool(shared.terminated_N[k]),
                episode_over=bool(shared.episode_over_N[k]),
                truncated=bool(shared.truncated_N[k]),
                frames=int(shared.frames_N[k]),
                crashed=bool(shared.crashed_N[k]),
            )
            for k in numbers
        ]

    def lives(self, number: int) -> int:
        """Lives left in a copy, 0 if the environment has none."""
        return int(self._shared.lives_N[number])

    def close(self) -> None:
        """End the processes, and close the environment."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # it has nothing to save
        for pid in self.pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._pids.clear()
        for commands in self._sockets:
            commands.close()
        self._env.close()

    def _fork(self, k: int) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        with theirs:
            self._sockets.append(ours)
            with warnings.catch_warnings():
                # Python 3.12 warns of other threads' locks: the fork needs none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                self._serve(k, theirs, parent)
            self._pids[k] = pid

    def _serve(self, k: int, commands: socket.socket, parent: int) -> NoReturn:
        """Step copy k in a forked process until the parent closes its end."""
        try:
            gc.disable()  # what is garbage here is the parent's to finalize
            become_child(parent)
            for inherited in self._sockets:
                inherited.close()
            while commands.recv(1):
                self._step(k)
                commands.send(_STEP)
        except BaseException:
            with suppress(OSError):
                commands.sendall(_FAILED + traceback.format_exc().encode())
        finally:
            os._exit(0)

    def _step(self, k: int) -> None:
        shared = self._shared
        step = self._env.step(shared.action_N[k], shared.observation_N[k])
        shared.reward_N[k] = step.reward
        shared.terminated_N[k] = step.terminated
        shared.episode_over_N[k] = step.episode_over
        shared.truncated_N[k] = step.truncated
        shared.frames_N[k] = step.frames
        shared.crashed_N[k] = step.crashed
        shared.lives_N[k] = self._env.lives()

    def _await_answer(self, k: int) -> None:
        commands = self._sockets[k]
        with suppress(ConnectionError):
            answer = commands.recv(1)
            if answer == _STEP:
                return
            if answer == _FAILED:
                with commands.makefile("rb") as rest:
                    raise ChildFailedError(rest.read().decode())
        _, status = os.waitpid(self._pids.pop(k), 0)
        raise ChildDiedError(f"the process of copy {k}", os.waitstatus_to_exitcode(status))
