"""GA3C at work: real agents, predictors and trainers on CartPole."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from backend.specs.algorithms import ga3c as ga3c_spec
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.devices import DEVICES
from workers.engine.algorithms import ga3c_model, ga3c_troupe
from workers.engine.algorithms.ga3c import Ga3c
from workers.engine.algorithms.ga3c_model import MIN_TPS_SAMPLES, Predictor, Stats, Trainer, histogram
from workers.engine.ga3c.adjustment import Setting
from workers.engine.ga3c.memory import REQUEST_BYTES, Queue, Request
from workers.engine.learner import Advance

pytestmark = pytest.mark.timeout(120)

SERIES = {
    "speed/updates_per_s",
    "speed/predictions_per_s",
    "ga3c/prediction_queue",
    "ga3c/training_queue",
    "ga3c/prediction_batch",
    "ga3c/training_batch",
    "ga3c/n_actors",
    "ga3c/n_predictors",
    "ga3c/n_trainers",
    "ga3c/policy_lag",
    "ga3c/policy_lag_max",
    "ga3c/waiting_share",
}


def cartpole(environment: str = "CartPole-v1", device: str = "cpu", **config: Any) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": "ga3c",
            "environment": environment,
            "stop": {"agent_steps": 10**9},
            "device": device,
            "config": {"evaluation_episodes": 0, "n_actors": 4} | config,
        }
    )


@contextmanager
def at_work(**config: Any) -> Iterator[Ga3c]:
    learner = Ga3c(cartpole(**config))
    try:
        yield learner
    finally:
        learner.close()


def until(learner: Ga3c, steps: int) -> list[Advance]:
    """Train for at least so many agent steps."""
    told: list[Advance] = []
    while sum(advance.agent_steps for advance in told) < steps:
        told.append(learner.advance(0.0, watched=False))
    return told


def descendants() -> list[psutil.Process]:
    return [
        p for p in psutil.Process().children(recursive=True) if "resource_tracker" not in str(p.cmdline())
    ]


def agents(learner: Ga3c) -> list[psutil.Process]:
    return [psutil.Process(agent.helper.process.pid) for agent in learner._troupe._agents.values()]


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_told_adds_up_and_the_policy_lags_under_load(device: str) -> None:
    with at_work(device=device, n_predictors=2, n_trainers=2, n_actors=8) as learner:
        told = until(learner, 4_000)
        learner._model.pause()
        told.append(learner._take(Advance(0, 0, 0), 1.0))
        steps, frames = learner._counted()
    assert sum(a.agent_steps for a in told) == steps
    assert sum(a.frames for a in told) == frames
    episodes = [e for a in told for e in a.episodes]
    assert all(e.episode_return == e.length_steps for e in episodes)
    assert {e.source for e in episodes} == {f"actor {k}" for k in range(8)}
    assert any(e.recording is not None for e in episodes)
    lags = [a.internals["ga3c/policy_lag"] for a in told if "ga3c/policy_lag" in a.internals]
    assert np.mean(lags) > 0
    series = {name for a in told for name in a.internals}
    assert series >= SERIES
    shares = [a.of_sources for a in told if a.of_sources]
    assert all(
        sum(of["ga3c/policy_lag_share"] for of in one.values()) == pytest.approx(1.0) for one in shares
    )


def test_no_lag_in_lock_step() -> None:
    """One of each, taking turns: whole episodes are learned from before the next decision is asked for."""
    with at_work(n_actors=1, n_predictors=1, n_trainers=1, min_training_batch=1, t_max=255) as learner:
        for worker in learner._workers():
            worker.end()
        learner._model.go()
        for worker in learner._workers():
            worker.join()
        [predictor], [trainer] = learner._predictors, learner._trainers
        told: list[float] = []
        while len(told) < 20:
            learner._troupe.listen(0.001, Advance(0, 0, 0))
            if not len(learner._predictions):
                continue
            # Whatever the agent has submitted, it submitted before it asked again.
            while len(learner._trainings):
                trainer._work()
            predictor._work()
            internals, _, updates = learner._stats.take(1.0, 0.0, learner._setting)
            if updates:
                told.append(internals["ga3c/policy_lag_max"])
    assert told == [0.0] * 20


def test_predictors_and_trainers_overlap_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: dict[type, list[tuple[float, float]]] = {Predictor: [], Trainer: []}

    def timed(kind: type, name: str) -> None:
        work = getattr(kind, name)

        def spanned(self: Any, *arguments: Any) -> None:
            began = time.monotonic()
            work(self, *arguments)
            spans[kind].append((began, time.monotonic()))

        monkeypatch.setattr(kind, name, spanned)

    timed(Predictor, "_work")
    timed(Trainer, "_train")
    with at_work(n_actors=8) as learner:
        until(learner, 3_000)
    overlaps = sum(
        any(began < end and other < ended for other, end in spans[Predictor])
        for began, ended in spans[Trainer]
    )
    assert overlaps > len(spans[Trainer]) // 10


def test_what_agents_send_is_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state of Catch is 7,056 bytes; what is sent a decision, one agent's replays among it, is not 100."""
    pickled: list[int] = []

    def weighed(message: bytes) -> Any:
        pickled.append(len(message))
        return pickle.loads(message)  # from our own agents

    monkeypatch.setattr(ga3c_troupe, "pickle", SimpleNamespace(loads=weighed))
    requests: list[int] = []
    take = Queue.take

    def counted(self: Queue, at_most: int) -> list[Request]:
        taken = take(self, at_most)
        requests.append(len(taken) * REQUEST_BYTES)
        return taken

    monkeypatch.setattr(Queue, "take", counted)
    with at_work(environment="Catch-v0", n_predictors=1, n_trainers=1) as learner:
        steps = sum(advance.agent_steps for advance in until(learner, 300))
    assert len(pickled) > 300 // 11 // 2, "an episode each 11 decisions"
    sent = (sum(pickled) + sum(requests)) / steps
    with capsys.disabled():
        print(f"\nGA3C's agents on Catch send {sent:.0f} bytes a decision")  # noqa: T201
    assert sent < 100


def test_agents_need_no_torch() -> None:
    code = "import sys, workers.engine.ga3c.agent; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_agents_killed_at_random_are_replaced_and_nothing_is_left() -> None:
    files = len(os.listdir("/proc/self/fd"))
    before = {p.pid for p in descendants()}
    with at_work(n_actors=6) as learner:
        until(learner, 500)
        rng = np.random.default_rng(0)
        warnings: list[str] = []
        for _ in range(5):
            victim = agents(learner)[rng.integers(6)]
            victim.kill()
            while len(warnings) < 1:
                warnings += learner.advance(0.0, watched=False).warnings
            assert "was killed by signal 9; another takes its place" in warnings.pop()
            assert len(agents(learner)) == 6
        until(learner, 1_000)
        mine = agents(learner)
    assert not [p for p in mine if p.is_running()]
    left = [p for p in descendants() if p.pid not in before and "forkserver" not in str(p.cmdline())]
    assert not left
    assert len(os.listdir("/proc/self/fd")) <= files + 4, "the fork server's own"


def test_numbers_change_on_a_running_run() -> None:
    with at_work(n_actors=2) as learner:
        until(learner, 100)
        for n_actors, n_predictors, n_trainers, batch in ((5, 3, 2, 1), (1, 1, 1, 30), (3, 2, 1, 60)):
            config = learner.config.model_copy(
                update={
                    "n_actors": n_actors,
                    "n_predictors": n_predictors,
                    "n_trainers": n_trainers,
                    "min_training_batch": batch,
                }
            )
            learner.change(config)
            until(learner, 400)
            # What was under way may still be trained on in batches of the old size, though not for long:
            # then a submission more, at most, than the least that makes a batch.
            for _ in range(50):
                told = until(learner, 1)[-1].internals
                if batch <= told.get("ga3c/training_batch", 0.0) < batch + config.t_max:
                    break
            assert batch <= told["ga3c/training_batch"] < batch + config.t_max
            assert len(agents(learner)) == told["ga3c/n_actors"] == n_actors
            assert len(learner._predictors) == told["ga3c/n_predictors"] == n_predictors
            assert len(learner._trainers) == told["ga3c/n_trainers"] == n_trainers


@pytest.mark.long
def test_the_walk_starts_and_stops_real_parts() -> None:
    with at_work(n_actors=1, adjustment_interval_s=0.5) as learner:
        seen = set()
        while len(seen) < 4:
            learner.advance(0.0, watched=False)
            seen.add(learner._setting)
            assert len(agents(learner)) == learner._setting.n_actors
            assert len(learner._predictors) == learner._setting.n_predictors
            assert len(learner._trainers) == learner._setting.n_trainers


def test_what_the_walk_found_is_let_go_where_no_memory_is_claimed_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ga3c_spec, "MAX_WALKED_AGENTS", 5)
    with at_work(n_actors=2, adjustment_interval_s=60.0) as learner:
        learner._set(Setting(4, 2, 1))  # as the walk does
        state = learner.state()  # which pauses: threads must end all the same
        learner.change(learner.config.model_copy(update={"adjustment_interval_s": 0.0}))
        assert learner.setting == Setting(2, 1, 1)
        assert len(agents(learner)) == 2
        learner.change(learner.config.model_copy(update={"adjustment_interval_s": 60.0}))
        learner.restore(state)
        assert learner.setting == Setting(4, 2, 1)
        learner.restore(state | {"setting": [40, 2, 1]})  # of a run that had asked for more
        assert learner.setting == Setting(5, 2, 1)


def test_what_is_not_training_is_no_part_of_tps(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(ga3c_model, "time", SimpleNamespace(monotonic=lambda: now_s))
    stats = Stats()
    stats.begin_interval()
    taken = None
    while taken is None:
        now_s += 60.0  # an evaluation
        stats.begin_sample()
        for _ in range(10):
            stats.trained(1, np.zeros(1, np.int64), {})
        now_s += 1.0
        taken = stats.interval(1.0)
    assert taken == [10.0] * MIN_TPS_SAMPLES


def test_theta_stands_still_while_it_is_looked_at_and_goes_on_after() -> None:
    with at_work(t_max=255) as learner:  # an agent that has submitted four segments would wait for trainers
        until(learner, 500)
        state = learner.state()
        steps = learner._counted()[0]
        learner.policy(0)
        while len(learner._predictions) < 4:  # until each agent has asked for what it will not be told yet
            time.sleep(0.001)
        assert torch.equal(state["theta"], learner._model.theta)
        # Agents finish at most the decision they had been answered.
        assert learner._counted()[0] - steps <= 4
        until(learner, 500)
        assert not torch.equal(state["theta"], learner._model.theta)
        counts = learner._counted()
        learner.restore(state)
        assert learner._counted()[0] == np.asarray(state["counts"])[:, 0].sum() <= counts[0]
        assert torch.equal(state["theta"], learner._model.theta)
        until(learner, 500)


def test_histogram_of_lags() -> None:
    shares = dict(histogram(np.array([0, 0, 1, 3, 4, 7, 8, 100])))
    assert shares["0"] == 0.25
    assert shares["1"] == shares["2-3"] == shares["8-15"] == shares["64+"] == 0.125
    assert shares["4-7"] == 0.25
    assert sum(shares.values()) == 1


def test_agents_go_when_the_engine_is_killed_and_leave_nothing(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
from tests.workers.engine.test_ga3c import agents, cartpole, until
from workers.engine.algorithms.ga3c import Ga3c
if __name__ == "__main__":
    learner = Ga3c(cartpole())
    until(learner, 200)
    print(*[p.pid for p in agents(learner)], flush=True)
    until(learner, 10**9)
"""
    engine = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    with engine:
        assert engine.stdout is not None
        try:
            mine = [psutil.Process(int(pid)) for pid in engine.stdout.readline().split()]
            assert len(mine) == 4
            assert list(tmp_path.iterdir()), "the fork server's socket"
        finally:
            engine.kill()
    gone, alive = psutil.wait_procs(mine, timeout=15)
    assert not alive
    assert len(gone) == 4
    assert not list(tmp_path.iterdir())
