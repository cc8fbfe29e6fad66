"""What logging costs the script."""

import time
from statistics import median

import gymnasium
import numpy as np
import pytest

import callboard
from tests.client.support import Target

pytestmark = pytest.mark.benchmark

N_BLOCKS = 10
BLOCK_S = 3.0
STEPS_PER_LOG = 32


def test_log_takes_at_most_10_microseconds_of_the_calling_thread(target: Target) -> None:
    values = {"loss/policy": 0.5, "loss/value": 1.5, "loss/entropy": 2.5, "optim/grad_norm": 0.1}
    taken_s, n_calls = 0.0, 20_000
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(n_calls):
            began = time.perf_counter()
            run.log(values, agent_steps=step, frames=4 * step)
            taken_s += time.perf_counter() - began
            if step % 10 == 0:
                time.sleep(0.001)
        assert run.n_dropped == 0
    print(f"{taken_s / n_calls * 1e6:.2f} microseconds a call with {len(values)} values")  # noqa: T201
    assert taken_s / n_calls <= 10e-6


def test_logging_slows_a_training_loop_by_at_most_3_percent(target: Target) -> None:
    """The same loop, alternately with and without logging, in 10 blocks."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    with callboard.init(algorithm="a", environment="CartPole-v1") as run:
        loop = Loop(run)
        loop.steps_per_s(logging=True)
        for block in range(N_BLOCKS):
            logging = block % 2 == 0
            rates[logging].append(loop.steps_per_s(logging=logging))
        assert run.n_dropped == 0
    slowdown = median(rates[False]) / median(rates[True]) - 1
    print(f"{median(rates[False]):,.0f} agent steps/s; with logging {slowdown:.1%} slower")  # noqa: T201
    assert slowdown <= 0.03


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

    def steps_per_s(self, *, logging: bool) -> float:
        """Train for a block; its speed."""
        n, began = 0, time.perf_counter()
        while time.perf_counter() - began < BLOCK_S:
            gradient = np.zeros(4)
            for _ in range(STEPS_PER_LOG):
                gradient += self._step(logging)
            self._weights += 0.01 * gradient
            n += STEPS_PER_LOG
            if logging:
                values = {
                    "loss/policy": float(-gradient.sum()),
                    "optim/grad_norm": float(np.abs(gradient).max()),
                }
                self._run.log(values, agent_steps=self._agent_steps)
        return n / (time.perf_counter() - began)

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
