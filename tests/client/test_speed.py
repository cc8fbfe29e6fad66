"""What logging costs the script."""

import time
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest

import callboard
from tests.client.support import Target
from tests.support.databases import short_folder
from tests.support.installation import installation

pytestmark = pytest.mark.benchmark

N_BLOCKS = 10
BLOCK_STEPS = 60_000
STEPS_PER_LOG = 32


def test_log_takes_at_most_10_microseconds_of_the_calling_thread(target: Target) -> None:
    values = {"loss/policy": 0.5, "loss/value": 1.5, "loss/entropy": 2.5, "optim/grad_norm": 0.1}
    taken_s, n_calls = 0.0, 20_000
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(n_calls):
            began = time.thread_time()
            run.log(values, agent_steps=step, frames=4 * step)
            taken_s += time.thread_time() - began
            if step % 10 == 0:
                time.sleep(0.001)
        assert run.n_dropped == 0
    print(f"{taken_s / n_calls * 1e6:.2f} microseconds a call with {len(values)} values")  # noqa: T201
    assert taken_s / n_calls <= 10e-6


def test_logging_takes_at_most_3_percent_of_the_time_of_a_training_loop() -> None:
    """The same loop, alternately with and without logging, in 10 blocks, of which the fastest counts.

    Measured is processor time, which other processes do not change, and the server is one of them: in this
    process it would compete for the interpreter.
    """
    spent: dict[bool, list[Spent]] = {True: [], False: []}
    with (
        short_folder() as folder,
        installation(folder / "home") as running,
        pytest.MonkeyPatch.context() as environment,
    ):
        running.log_in()
        environment.setenv("CALLBOARD_HOME", str(running.home))
        environment.delenv("CALLBOARD_URL", raising=False)
        with callboard.init(algorithm="a", environment="CartPole-v1") as run:
            loop = Loop(run)
            loop.train(logging=True)
            for block in range(N_BLOCKS):
                spent[block % 2 == 0].append(loop.train(logging=block % 2 == 0))
            assert run.n_dropped == 0
    shares = []
    for of in ("thread_us", "process_us"):
        plain, logged = (min(getattr(times, of) for times in spent[logging]) for logging in (False, True))
        shares.append(logged / plain - 1)
        print(f"{of}: {plain:.2f} an agent step; with logging {logged:.2f}: {shares[-1]:.1%}")  # noqa: T201
    assert shares[0] <= 0.03
    assert shares[1] <= 0.05


class Spent(NamedTuple):
    """Processor time of an agent step."""

    thread_us: float
    process_us: float
    """With that of the client's own threads."""


class Loop:
    """A linear policy learns CartPole by REINFORCE, step by step as small scripts do."""

    def __init__(self, run: callboard.ExternalRun) -> None:
        self._run = run
        self._env = gymnasium.make("CartPole-v1")
        self._random = np.random.default_rng(0)
        self._weights = np.zeros(4)
        self._observation, _ = self._env.reset(seed=0)
        self._agent_steps = 0
        self._return = 0.0

    def train(self, *, logging: bool) -> Spent:
        """Train for a block."""
        thread_s, process_s = time.thread_time(), time.process_time()
        for _ in range(BLOCK_STEPS // STEPS_PER_LOG):
            gradient = np.zeros(4)
            for _ in range(STEPS_PER_LOG):
                gradient += self._step(logging)
            self._weights += 0.01 * gradient
            if logging:
                values = {
                    "loss/policy": float(-gradient.sum()),
                    "optim/grad_norm": float(np.abs(gradient).max()),
                }
                self._run.log(values, agent_steps=self._agent_steps)
        n_steps = BLOCK_STEPS // STEPS_PER_LOG * STEPS_PER_LOG
        return Spent(
            (time.thread_time() - thread_s) / n_steps * 1e6, (time.process_time() - process_s) / n_steps * 1e6
        )

    def _step(self, logging: bool) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        right = 1 / (1 + np.exp(-self._weights @ self._observation))
        action = int(self._random.random() < right)
        gradient = (action - right) * self._observation
        self._observation, reward, terminated, truncated, _ = self._env.step(action)
        self._agent_steps += 1
        self._return += float(reward)
        if terminated or truncated:
            if logging:
                self._run.episode(self._return, int(self._return), agent_steps=self._agent_steps)
            self._observation, _ = self._env.reset()
            self._return = 0.0
        return np.asarray(gradient, np.float64)
