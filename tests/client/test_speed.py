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

N_PAIRS = 800
CHUNK_STEPS = 640
STEPS_PER_LOG = 32


class Spent(NamedTuple):
    """Processor time of two loops of as many agent steps."""

    plain_s: float
    """Of the calling thread, without logging."""
    logging_s: float
    """With logging."""
    threads_s: float
    """Of the client's threads."""

    @property
    def plain_us(self) -> float:
        """Microseconds of an agent step without logging."""
        return self.plain_s / (N_PAIRS * CHUNK_STEPS) * 1e6


@pytest.fixture(scope="module")
def spent() -> Spent:
    """Of two equal loops, one of which logs, in turns of some milliseconds.

    In turns of a second the speed of a machine changes by more than the bound from one to the next, a single
    loop does other work in each turn, as its episodes become shorter, and what the client's threads do for
    one turn falls into the next. Measured is processor time, which other processes do not take, and the
    server is one of them: in this process it would compete for the interpreter.
    """
    spent_s = {True: 0.0, False: 0.0}
    with (
        short_folder() as folder,
        installation(folder / "home") as running,
        pytest.MonkeyPatch.context() as environment,
    ):
        running.log_in()
        environment.setenv("CALLBOARD_HOME", str(running.home))
        environment.delenv("CALLBOARD_URL", raising=False)
        with callboard.init(algorithm="a", environment="CartPole-v1") as run:
            loops = {True: Loop(run), False: Loop(None)}
            process_s, thread_s = time.process_time(), time.thread_time()
            for pair in range(N_PAIRS):
                for logging in (pair % 2 == 0, pair % 2 == 1):
                    began = time.thread_time()
                    loops[logging].train(CHUNK_STEPS)
                    spent_s[logging] += time.thread_time() - began
            assert run.flush()
            threads_s = time.process_time() - process_s - (time.thread_time() - thread_s)
            assert run.n_dropped == 0
    assert loops[True].weights.tolist() == loops[False].weights.tolist()
    return Spent(spent_s[False], spent_s[True], threads_s)


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


def test_logging_takes_at_most_3_percent_of_the_time_of_a_training_loop(spent: Spent) -> None:
    share = spent.logging_s / spent.plain_s - 1
    print(f"{spent.plain_us:.2f} microseconds an agent step; logging {share:.1%}")  # noqa: T201
    assert share <= 0.03


def test_threads_of_the_client_take_at_most_5_percent_of_a_training_loop(spent: Spent) -> None:
    share = (spent.logging_s + spent.threads_s) / spent.plain_s - 1
    print(f"{spent.plain_us:.2f} microseconds an agent step; logging with threads {share:.1%}")  # noqa: T201
    assert share <= 0.05


class Loop:
    """The loop of a linear policy on CartPole, step by step as small scripts have it.

    Its updates are so small that it stays as good as random: episodes of a script are shortest, and their
    rows most frequent, before it has learnt.

    Args:
        run: where it logs, if it does.
    """

    def __init__(self, run: callboard.ExternalRun | None) -> None:
        self.weights = np.zeros(4)
        self._run = run
        self._env = gymnasium.make("CartPole-v1")
        self._random = np.random.default_rng(0)
        self._observation, _ = self._env.reset(seed=0)
        self._agent_steps = 0
        self._return = 0.0

    def train(self, n_steps: int) -> None:
        """Train for a number of agent steps, a multiple of those between two updates."""
        for _ in range(n_steps // STEPS_PER_LOG):
            gradient = np.zeros(4)
            for _ in range(STEPS_PER_LOG):
                gradient += self._step()
            self.weights += 1e-5 * gradient
            # Computed without logging, too: it is the script that computes what is logged.
            values = {"loss/policy": float(-gradient.sum()), "optim/grad_norm": float(np.abs(gradient).max())}
            if self._run is not None:
                self._run.log(values, agent_steps=self._agent_steps)

    def _step(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        right = 1 / (1 + np.exp(-self.weights @ self._observation))
        action = int(self._random.random() < right)
        gradient = (action - right) * self._observation
        self._observation, reward, terminated, truncated, _ = self._env.step(action)
        self._agent_steps += 1
        self._return += float(reward)
        if terminated or truncated:
            if self._run is not None:
                self._run.episode(self._return, int(self._return), agent_steps=self._agent_steps)
            self._observation, _ = self._env.reset()
            self._return = 0.0
        return np.asarray(gradient, np.float64)
