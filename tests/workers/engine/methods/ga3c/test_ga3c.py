"""GA3C at work: real agents, predictors and trainers on CartPole."""

import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from tests.support.devices import DEVICES
from tests.support.waiting import PATIENCE_S, Patience, until
from tests.workers.engine.methods.ga3c.ga3c_runs import agents, at_work, cartpole, train_for
from workers.engine.methods.base import StepResult, histogram
from workers.engine.methods.ga3c import model as ga3c_model
from workers.engine.methods.ga3c.adjustment import ThreadCounts
from workers.engine.methods.ga3c.ga3c import Ga3cLearner
from workers.engine.methods.ga3c.memory import REQUEST_BYTES, AgentRequest, Queue
from workers.engine.methods.ga3c.model import LAG_EDGES, MIN_TPS_SAMPLES, Predictor, Stats, Trainer
from workers.engine.processes import child

pytestmark = pytest.mark.service

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


def descendants() -> list[psutil.Process]:
    processes = []
    for p in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # one of another test that has just ended
            if "resource_tracker" not in str(p.cmdline()):
                processes.append(p)
    return processes


@pytest.mark.parametrize("device", DEVICES)
def test_reported_counts_add_up_and_policy_lag_is_positive_under_load(device: str) -> None:
    with at_work(device=device, n_predictors=2, n_trainers=2, n_actors=8) as learner:
        reported = train_for(learner, 4_000)
        patience = Patience()
        while patience.lasts() and len({e.source for a in reported for e in a.episodes}) < 8:
            reported += train_for(learner, 1)
        learner.model.pause()
        # Agents that have their prediction still act: nothing is counted any more once none is left.
        learner.agents.resize(0)
        reported.append(learner.take(StepResult(0, 0, 0), 1.0))
        steps, frames = learner.counted()
    assert sum(a.agent_steps for a in reported) == steps
    assert sum(a.frames for a in reported) == frames
    episodes = [e for a in reported for e in a.episodes]
    assert all(e.episode_return == e.length_steps for e in episodes)
    assert {e.source for e in episodes} == {f"actor {k}" for k in range(8)}
    assert any(e.recording is not None for e in episodes)
    lags = [a.metrics["ga3c/policy_lag"] for a in reported if "ga3c/policy_lag" in a.metrics]
    assert np.mean(lags) > 0
    series = {name for a in reported for name in a.metrics}
    assert series >= SERIES
    shares = [a.metrics_by_source for a in reported if a.metrics_by_source]
    assert all(
        sum(of["ga3c/policy_lag_share"] for of in share.values()) == pytest.approx(1.0) for share in shares
    )


def test_policy_lag_is_zero_in_lock_step() -> None:
    """One of each, taking turns: whole episodes are learned from before the next decision is asked for."""
    with at_work(n_actors=1, n_predictors=1, n_trainers=1, min_training_batch=1, t_max=255) as learner:
        for worker in learner.threads():
            worker.end()
        learner.model.go()
        for worker in learner.threads():
            worker.join()
        [predictor], [trainer] = learner.predictors, learner.trainers
        reported: list[float] = []
        patience = Patience()
        while patience.lasts() and len(reported) < 20:
            learner.agents.receive(0.001, StepResult(0, 0, 0))
            if not len(learner.predictions):
                continue
            # Whatever the agent has submitted, it submitted before it asked again.
            patience = Patience()
            while patience.lasts() and len(learner.trainings):
                trainer.work()
            predictor.work()
            metrics, _, updates = learner.stats.take(1.0, np.zeros(1), learner.thread_counts)
            if updates:
                reported.append(metrics["ga3c/policy_lag_max"])
    assert reported == [0.0] * 20


def test_close_ends_agents_that_wait_for_a_full_training_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "STOP_TIMEOUT_S", 10 * PATIENCE_S)  # none is killed for being late
    learner = Ga3cLearner(cartpole(n_actors=4, n_predictors=1, n_trainers=1, t_max=5))
    for trainer in learner.trainers:
        trainer.end()
    # Filled with requests of processes that no longer exist, which are ignored.
    with suppress(BlockingIOError):
        while True:
            learner.trainings.entrance.send(bytes(REQUEST_BYTES), socket.MSG_DONTWAIT)
    learner.model.go()
    try:
        until(lambda: learner.counted()[0] >= 4 * 5)  # each has a rollout to submit
    finally:
        closing = threading.Thread(target=learner.close, daemon=True)
        closing.start()
        closing.join(PATIENCE_S)
    assert not closing.is_alive()


def test_predictors_and_trainers_overlap_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: dict[type, list[tuple[float, float]]] = {Predictor: [], Trainer: []}

    def timed(kind: type, name: str) -> None:
        work = getattr(kind, name)

        def spanned(self: Any, *arguments: Any) -> None:
            began = time.monotonic()
            work(self, *arguments)
            spans[kind].append((began, time.monotonic()))

        monkeypatch.setattr(kind, name, spanned)

    timed(Predictor, "work")
    timed(Trainer, "train")
    with at_work(n_actors=8) as learner:
        train_for(learner, 3_000)
    overlaps = sum(
        any(began < end and other < ended for other, end in spans[Predictor])
        for began, ended in spans[Trainer]
    )
    assert overlaps > len(spans[Trainer]) // 10


def test_agent_messages_are_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state of Catch is 7,056 bytes; what is sent a decision, one agent's replays among it, is not 100."""
    pickled: list[int] = []

    def weighed(message: bytes) -> Any:
        pickled.append(len(message))
        return pickle.loads(message)  # from our own agents

    monkeypatch.setattr(child, "pickle", SimpleNamespace(loads=weighed, dumps=pickle.dumps))
    requests: list[int] = []
    take = Queue.take

    def counted(self: Queue, at_most: int) -> list[AgentRequest]:
        taken = take(self, at_most)
        requests.append(len(taken) * REQUEST_BYTES)
        return taken

    monkeypatch.setattr(Queue, "take", counted)
    with at_work(environment="Catch-v0", n_predictors=1, n_trainers=1) as learner:
        steps = sum(advance.agent_steps for advance in train_for(learner, 300))
    assert len(pickled) > 300 // 11 // 2, "an episode each 11 decisions"
    sent = (sum(pickled) + sum(requests)) / steps
    with capsys.disabled():
        print(f"\nGA3C's agents on Catch send {sent:.0f} bytes a decision")  # noqa: T201
    assert sent < 100


def test_agents_need_no_torch() -> None:
    code = "import sys, workers.engine.methods.ga3c.agent; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_killed_agents_are_replaced_and_leave_nothing() -> None:
    files = len(os.listdir("/proc/self/fd"))
    before = {p.pid for p in descendants()}
    with at_work(n_actors=6, agents_per_process=2) as learner:
        train_for(learner, 500)
        rng = np.random.default_rng(0)
        warnings: list[str] = []
        for _ in range(5):
            number = rng.integers(3)
            agents(learner)[number].kill()
            patience = Patience()
            while patience.lasts() and len(warnings) < 1:
                warnings += learner.advance(0.0, watched=False).warnings
            of = f"agents {2 * number} to {2 * number + 1}"
            assert warnings.pop() == f"process of {of} was killed by signal 9; another takes its place"
            assert len(agents(learner)) == 3
        played: set[str] = set()
        patience = Patience()
        while patience.lasts() and len(played) < 6:
            played |= {e.source for advance in train_for(learner, 1) for e in advance.episodes}
        assert played == {f"actor {k}" for k in range(6)}
        mine = agents(learner)
    assert not [p for p in mine if p.is_running()]
    left = [p for p in descendants() if p.pid not in before and "forkserver" not in str(p.cmdline())]
    assert not left
    assert len(os.listdir("/proc/self/fd")) <= files + 4, "the fork server's own"


def test_n_actors_predictors_and_trainers_change_while_training() -> None:
    with at_work(n_actors=2, agents_per_process=2) as learner:
        train_for(learner, 100)
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
            train_for(learner, 400)
            # What was under way may still be trained on in batches of the old size, though not for long:
            # then a submission more, at most, than the least that makes a batch.
            for _ in range(50):
                reported = train_for(learner, 1)[-1].metrics
                if batch <= reported.get("ga3c/training_batch", 0.0) < batch + config.t_max:
                    break
            assert batch <= reported["ga3c/training_batch"] < batch + config.t_max
            assert reported["ga3c/n_actors"] == n_actors
            assert len(agents(learner)) == (n_actors + 1) // 2
            assert len(learner.predictors) == reported["ga3c/n_predictors"] == n_predictors
            assert len(learner.trainers) == reported["ga3c/n_trainers"] == n_trainers


@pytest.mark.parametrize("settings", [2, pytest.param(4, marks=pytest.mark.long)])
def test_adjustment_starts_and_stops_real_agents_and_threads(settings: int) -> None:
    with at_work(n_actors=1, adjustment_interval_s=0.5) as learner:
        seen: set[ThreadCounts] = set()
        patience = Patience()
        while patience.lasts() and len(seen) < settings:
            learner.advance(0.0, watched=False)
            seen.add(learner.thread_counts)
            assert len(agents(learner)) == learner.thread_counts.n_actors
            assert len(learner.predictors) == learner.thread_counts.n_predictors
            assert len(learner.trainers) == learner.thread_counts.n_trainers


def test_restore_limits_the_adjusted_agents_to_the_claimed_memory() -> None:
    with at_work(n_actors=2, adjustment_interval_s=60.0, max_adjusted_actors=5) as learner:
        learner.resize(ThreadCounts(4, 2, 1))  # as the walk does
        state = learner.state()  # which pauses: threads must end all the same
        learner.change(learner.config.model_copy(update={"adjustment_interval_s": 0.0}))
        assert learner.thread_counts == ThreadCounts(2, 1, 1)
        assert len(agents(learner)) == 2
        learner.change(learner.config.model_copy(update={"adjustment_interval_s": 60.0}))
        learner.restore(state)
        assert learner.thread_counts == ThreadCounts(4, 2, 1)
        learner.restore(state | {"setting": [40, 2, 1]})  # of a run that had asked for more
        assert learner.thread_counts == ThreadCounts(5, 2, 1)


def test_restore_keeps_the_adjusted_numbers_that_a_fork_does_not_change() -> None:
    with at_work(n_actors=2, adjustment_interval_s=60.0) as learner:
        learner.resize(ThreadCounts(3, 2, 2))  # as the walk does
        state = learner.state()
        learner.change(learner.config.model_copy(update={"n_actors": 1, "n_trainers": 3}))
        learner.restore(state)
        assert learner.thread_counts == ThreadCounts(1, 2, 3)
        assert len(agents(learner)) == 1


def test_tps_excludes_evaluation_and_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(ga3c_model, "time", SimpleNamespace(monotonic=lambda: now_s))
    stats = Stats()
    stats.begin_interval()
    taken = None
    patience = Patience()
    while patience.lasts() and taken is None:
        now_s += 60.0  # an evaluation
        stats.begin_sample()
        for _ in range(10):
            stats.trained(1, np.zeros(1, np.int64), {})
        now_s += 1.0
        taken = stats.finish_sample(1.0)
    assert taken == [10.0] * MIN_TPS_SAMPLES


def test_theta_is_constant_while_state_is_read() -> None:
    with at_work(t_max=255) as learner:  # an agent that has submitted four segments would wait for trainers
        train_for(learner, 500)
        patience = Patience()
        while patience.lasts() and len(learner.trainings):
            train_for(learner, 1)
        state = learner.state()
        steps = learner.counted()[0]
        learner.policy(0)
        patience = Patience()
        while (
            patience.lasts() and len(learner.predictions) < 4
        ):  # until each agent has asked for what it gets no answer to yet
            time.sleep(0.001)
        assert torch.equal(state["theta"], learner.model.theta)
        # Agents finish at most the decision they had been answered.
        assert learner.counted()[0] - steps <= 4
        train_for(learner, 500)
        assert not torch.equal(state["theta"], learner.model.theta)
        counts = learner.counted()
        learner.restore(state)
        assert learner.counted()[0] == np.asarray(state["counts"])[:, 0].sum() <= counts[0]
        assert torch.equal(state["theta"], learner.model.theta)
        train_for(learner, 500)


def test_policy_lag_histogram_counts_every_lag() -> None:
    shares = dict(histogram(np.array([0, 0, 1, 3, 4, 7, 8, 63, 64, 100]), LAG_EDGES))
    assert shares == {
        "0": 0.2,
        "1": 0.1,
        "2-3": 0.1,
        "4-7": 0.2,
        "8-15": 0.1,
        "16-31": 0.0,
        "32-63": 0.1,
        "64+": 0.2,
    }


def test_frames_are_sent_while_watched() -> None:
    with at_work() as learner:
        live_frames: list[bytes] = []
        patience = Patience()
        while patience.lasts() and not live_frames:
            live_frames += learner.advance(0.0, watched=True).live_frames
    assert live_frames[0].startswith(b"\xff\xd8")  # a JPEG's first bytes


def test_policy_lag_is_reported_as_mean_maximum_and_shares() -> None:
    stats = Stats()
    stats.trained(2, np.array([0, 4]), {})
    stats.trained(1, np.array([2]), {})
    metrics, sources, updates = stats.take(1.0, np.zeros(1), ThreadCounts(1, 1, 1))
    assert updates == 2
    assert (metrics["ga3c/policy_lag"], metrics["ga3c/policy_lag_max"]) == (2.0, 4.0)
    assert sources["lag 0"]["ga3c/policy_lag_share"] == pytest.approx(1 / 3)


@pytest.mark.long
def test_killed_engine_leaves_no_agents(short_tmp: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
from tests.workers.engine.methods.ga3c.ga3c_runs import agents, cartpole, train_for
from workers.engine.methods.ga3c.ga3c import Ga3cLearner
if __name__ == "__main__":
    learner = Ga3cLearner(cartpole())
    train_for(learner, 200)
    print(*[p.pid for p in agents(learner)], flush=True)
    train_for(learner, 10**9)
"""
    engine = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(short_tmp)},
    )
    with engine:
        assert engine.stdout is not None
        try:
            mine = [psutil.Process(int(pid)) for pid in engine.stdout.readline().split()]
            assert len(mine) == 4
            assert list(short_tmp.iterdir()), "the fork server's socket"
        finally:
            engine.kill()
    gone, alive = psutil.wait_procs(mine, timeout=PATIENCE_S)
    assert not alive
    assert len(gone) == 4
    until(lambda: not list(short_tmp.iterdir()))  # by the fork server, which may end after the agents
