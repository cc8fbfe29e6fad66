"""GA3C's loop against Babaeizadeh et al. 2017, equations 3 and 5, and Mnih et al. 2016, Algorithm S2.

One agent, one predictor and one trainer take turns in this process. The test repeats their updates in float64
from what the environment logged: rewards, returns, gradient, clip, RMSProp with the annealed rate.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from backend.specs.algorithms.ga3c import SEGMENTS
from backend.specs.events import CheckpointSavedEvent
from backend.specs.run import parse_run_spec
from tests.support.engine_process import logged
from tests.support.scripted_environment import EVERY_END, Decision, Outcome, Script, Scripted
from tests.support.waiting import PATIENCE_S, Patience, until
from tests.workers.engine.methods.ga3c.ga3c_runs import thread_agents
from workers.engine.methods.base import DivergedError, StepResult
from workers.engine.methods.ga3c import agent, ga3c
from workers.engine.methods.ga3c.adjustment import ThreadCounts
from workers.engine.methods.ga3c.ga3c import Ga3cLearner
from workers.engine.methods.ga3c.memory import EPISODES_BEGUN, FRAMES, STEPS
from workers.engine.methods.ga3c.model import Stats
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.training import checkpoint
from workers.engine.training.control import Control
from workers.engine.training.loop import Training

CONFIG: dict[str, Any] = {
    "n_actors": 1,
    "n_predictors": 1,
    "n_trainers": 1,
    "min_training_batch": 1,
    "adjustment_interval_s": 0,
    "evaluation_episodes": 0,
    "t_max": 3,
    "gamma": 0.9,
    "learning_rate": 0.02,
    "learning_rate_schedule": "linear",
    "rmsprop_decay": 0.9,
    "rmsprop_eps": 0.1,
    "reward_clip": 1.0,
    "max_grad_norm": 4.0,
    "beta": 0.05,
    "value_coefficient": 0.7,
    "log_eps": 0.01,
}


@contextmanager
def lock_step(
    script: Script, monkeypatch: pytest.MonkeyPatch, outcomes: Sequence[Outcome] = EVERY_END, **config: Any
) -> Iterator[Ga3cLearner]:
    """A learner whose agent runs, and whose predictor and trainer work when they are called."""
    monkeypatch.setattr(ga3c, "ADVANCE_S", 0.0)
    request = {"algorithm": "ga3c", "stop": {"agent_steps": 10**9}, "config": CONFIG | config}
    with thread_agents(monkeypatch):
        learner = Ga3cLearner(parse_run_spec(script(outcomes) | request))
        try:
            for thread in learner.threads():
                thread.end()
            learner.model.go()
            for thread in learner.threads():
                thread.join()
            yield learner
        finally:
            learner.close()


def next_update(learner: Ga3cLearner) -> None:
    """Let the agent act until it has submitted a rollout, and train on that."""
    [predictor], [trainer] = learner.predictors, learner.trainers
    before = learner.model.updates
    patience = Patience()
    while patience.lasts() and learner.model.updates == before:
        learner.agents.receive(0.001, StepResult(0, 0, 0))
        if not len(learner.predictions):
            continue
        # What the agent has submitted, it submitted before it asked for the next prediction.
        if len(learner.trainings):
            trainer.work()
        else:
            predictor.work()


def objective(network: Any, rollout: list[Decision], c: Any) -> Tensor | None:
    """Equation 5 as a loss, of one rollout; None if nothing is learned from it."""

    def tensor(state: Any) -> Tensor:
        return torch.from_numpy(np.asarray(state, np.float64))[None]

    kept = [decision for decision in rollout if decision.end != "crashed"]
    last = rollout[-1]
    R = 0.0
    if last.end != "terminated":
        R = float(network(tensor(last.state if last.end == "crashed" else last.after))[1].detach())
    total = torch.zeros(())
    for decision in reversed(kept):
        R = float(np.clip(decision.reward, -c.reward_clip, c.reward_clip)) + c.gamma * R
        logits, v = network(tensor(decision.state))
        pi = logits[0].softmax(0)
        log_pi = (pi + c.log_eps).log()
        total = total - log_pi[int(decision.action)] * (R - v[0].detach())
        total = total + c.beta * ((pi + c.log_eps) * log_pi).sum() + c.value_coefficient * (R - v[0]) ** 2
    return total if kept else None


def rollouts(decisions: list[Decision], t_max: int) -> Iterator[list[Decision]]:
    rollout: list[Decision] = []
    for decision in decisions:
        rollout.append(decision)
        if decision.end or len(rollout) == t_max:
            yield rollout
            rollout = []


def test_agent_and_trainer_repeat_equation_5_update_after_update(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = [k / 16 for k in range(9)]
    with lock_step(script, monkeypatch) as learner:
        c = learner.config
        network = deepcopy(learner.model.network).double()
        flat = FlatParameters(network)
        g = learner.model.optimizer.g.double()
        thetas = []
        for done in progress:
            learner.advance(done, watched=False)
            next_update(learner)
            thetas.append(learner.model.theta.detach().clone())
        played = list(Scripted.decisions)
    norms, made = [], 0
    for rollout in rollouts(played, c.t_max):
        loss = objective(network, rollout, c)
        if loss is None or made == len(progress):
            continue
        flat.dtheta.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        norms.append(float(flat.dtheta.norm()))
        d = flat.dtheta * min(1.0, c.max_grad_norm / norms[-1])
        g = c.rmsprop_decay * g + (1 - c.rmsprop_decay) * d**2
        flat.theta.sub_(c.learning_rate * (1 - progress[made]) * d / (g + c.rmsprop_eps).sqrt())
        torch.testing.assert_close(
            thetas[made].double(), flat.theta, rtol=0, atol=2e-6, msg=f"update {made} of {rollout}"
        )
        made += 1
    assert made == len(progress)
    assert {decision.end for decision in played} == {"", "terminated", "truncated", "crashed"}
    assert min(norms) < c.max_grad_norm < max(norms), norms


def test_point_has_the_means_and_counts_since_the_last_one(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One update of three experiences; the agent has acted once more and waits for its fifth prediction."""
    with lock_step(script, monkeypatch) as learner:
        learner.advance(0.25, watched=False)
        network, c = deepcopy(learner.model.network).double(), learner.config
        next_update(learner)
        point, empty = (learner.take(StepResult(0, 0, 0), 0.5) for _ in range(2))
        rollout = Scripted.decisions[: c.t_max]
    with torch.no_grad():
        states = torch.from_numpy(
            np.stack([*(decision.state for decision in rollout), rollout[-1].after])
        ).double()
        logits, values = network(states)
    pi = logits.softmax(-1) + c.log_eps
    R, policy, value = float(values[-1]), [], []
    for t, decision in reversed(list(enumerate(rollout))):
        R = float(np.clip(decision.reward, -c.reward_clip, c.reward_clip)) + c.gamma * R
        policy.append(-float(pi[t, int(decision.action)].log()) * (R - float(values[t])))
        value.append((R - float(values[t])) ** 2)
    assert (point.agent_steps, point.frames, point.updates) == (4, 4, 1)
    for metric, expected in {
        "loss/policy": np.mean(policy),
        "loss/value": np.mean(value),
        "loss/entropy": float(-(pi * pi.log())[:-1].sum(-1).mean()),
        "optim/learning_rate": c.learning_rate * 0.75,
        "ga3c/training_batch": 3,
        "ga3c/policy_lag": 0,
        "speed/updates_per_s": 1 / 0.5,
        "speed/predictions_per_s": 4 / 0.5,
    }.items():
        assert point.metrics[metric] == pytest.approx(expected, rel=1e-4), metric
    assert (empty.agent_steps, empty.frames, empty.updates) == (0, 0, 0)
    assert empty.metrics["speed/predictions_per_s"] == empty.metrics["speed/updates_per_s"] == 0
    assert not {"loss/value", "optim/learning_rate", "ga3c/policy_lag"} & empty.metrics.keys()


def test_crash_in_the_first_decision_of_a_rollout_frees_its_segment(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the agent would wait for a free one forever."""
    outcomes = [Outcome(0.0, "crashed"), Outcome(0.0, "crashed"), Outcome(1.0, "terminated")]
    with lock_step(script, monkeypatch, outcomes) as learner:
        learner.advance(0.0, watched=False)
        for _ in range(SEGMENTS):
            next_update(learner)
        assert learner.model.updates == SEGMENTS


def test_state_of_diverged_parameters_is_refused(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    with lock_step(script, monkeypatch) as learner:
        learner.advance(0.0, watched=False)
        next_update(learner)
        learner.state()
        with torch.no_grad():
            learner.model.theta[0] = float("nan")
        for refused in (learner.state, lambda: learner.policy(0)):
            with pytest.raises(DivergedError, match="theta became nan"):
                refused()


def test_state_and_policy_are_read_after_work_in_progress(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock_step(script, monkeypatch) as learner:
        model = learner.model
        for read in (model.pause, learner.state, lambda: learner.policy(0)):
            model.go()
            assert model.enter(threading.Event()), "as a trainer does"
            reading = threading.Thread(target=read, daemon=True)
            reading.start()
            reading.join(0.2)
            assert reading.is_alive()
            model.leave()
            reading.join(PATIENCE_S)
            assert not reading.is_alive()


class _Asked(threading.Event):
    """An ending that notes when a thread that enters the model looks at it, which then waits."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = threading.Event()

    def is_set(self) -> bool:
        self.seen.set()
        return super().is_set()


def test_end_wakes_a_thread_that_waits_in_a_paused_model(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock_step(script, monkeypatch) as learner:
        learner.model.pause()
        ending, entered = _Asked(), []
        waiting = threading.Thread(target=lambda: entered.append(learner.model.enter(ending)), daemon=True)
        waiting.start()
        assert ending.seen.wait(PATIENCE_S)
        learner.model.end(ending)
        waiting.join(PATIENCE_S)
        assert entered == [False]


def test_restored_state_has_the_updates_and_vectors_of_its_time(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock_step(script, monkeypatch) as learner:
        for _ in range(2):
            learner.advance(0.0, watched=False)
            next_update(learner)
        kept = learner.state()
        assert kept["updates"] == 2
        learner.advance(0.0, watched=False)
        next_update(learner)
        later = learner.state()
        assert later["updates"] == 3
        learner.restore(kept)
        again = learner.state()
        assert again["updates"] == 2
        # What agents did between the last report and the state is reported now.
        assert again["taken"] == kept["taken"]
        untaken = learner.counted()[0] - kept["taken"][0]
        assert learner.take(StepResult(0, 0, 0), 1.0).agent_steps == untaken
        for name in ("theta", "g"):
            assert not torch.equal(later[name], kept[name])
            assert torch.equal(again[name], kept[name])


def test_checkpoint_of_a_stopped_run_counts_every_episode_that_has_ended(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents run on after the last `advance`."""
    control, advance = Control(), Ga3cLearner.advance

    def run_on(self: Ga3cLearner, progress: float, *, watched: bool) -> StepResult:
        result = advance(self, progress, watched=watched)
        n = len(Scripted.decisions)
        until(lambda: len(Scripted.decisions) > n + 6)
        control.stop("enough")
        return result

    monkeypatch.setattr(Ga3cLearner, "advance", run_on)
    request = {"algorithm": "ga3c", "stop": {"agent_steps": 10**9}, "config": CONFIG}
    with thread_agents(monkeypatch):
        spec = parse_run_spec(script([Outcome(1.0), Outcome(1.0, "terminated")]) | request)
        ended = Training(spec, tmp_path / "run", control=control).run()
    assert (ended.state, ended.reason) == ("stopped", "enough"), ended.traceback
    [saved] = [event for event in logged(tmp_path / "run") if isinstance(event, CheckpointSavedEvent)]
    state = checkpoint.load(tmp_path / "run" / "checkpoints" / saved.file)["learner"]
    counts = state["counts"][0]
    # All but the last that began have ended, and the last may have: its agent then has not begun another.
    assert counts[EPISODES_BEGUN] - saved.episodes in (0, 1)
    assert 0 <= saved.agent_steps - 2 * saved.episodes <= 2
    assert [saved.agent_steps, saved.frames] == [counts[STEPS], counts[FRAMES]] == state["taken"]
    assert saved.updates == state["updates"]


def test_state_has_no_episode_that_ends_after_settle(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent still takes the decision that was predicted before the pause."""
    with lock_step(script, monkeypatch, [Outcome(1.0, "terminated")]) as learner:
        [predictor] = learner.predictors
        learner.advance(0.0, watched=False)
        until(lambda: len(learner.predictions))
        assert learner.settle(0.0).agent_steps == 0
        predictor.work()
        until(lambda: len(learner.predictions))  # the next episode has begun
        state = learner.state()
        assert state["counts"][0] == [0, 0, 1]
        assert state["taken"] == [0, 0]
        assert learner.settle(0.0).agent_steps == 0, "else a finished run is evaluated twice"
        assert learner.state()["counts"][0] == [0, 0, 1]
        assert learner.advance(0.0, watched=False).agent_steps == 1
        assert len(learner.settle(0.0).episodes) == 1
        assert learner.state()["counts"][0] == [1, 1, 2]


@pytest.mark.parametrize("awaited", ["predictor", "trainer"])
def test_waiting_time_excludes_pauses(script: Script, monkeypatch: pytest.MonkeyPatch, awaited: str) -> None:
    paused_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + paused_s)
    for module in (agent, ga3c):
        monkeypatch.setattr(module, "time", clock)
    with lock_step(script, monkeypatch, [Outcome(1.0, "terminated")]) as learner:
        [predictor], [trainer] = learner.predictors, learner.trainers
        learner.advance(0.0, watched=False)
        until(lambda: len(learner.predictions))
        if awaited == "trainer":
            patience = Patience()
            while patience.lasts() and len(learner.trainings) < SEGMENTS:
                predictor.work()
        learner.settle(0.0)
        paused_s = 1e6
        learner.advance(0.0, watched=False)
        (predictor if awaited == "predictor" else trainer).work()
        until(lambda: len(learner.predictions))  # the agent has waited, and counted that
        assert 0.0 < learner.take(StepResult(0, 0, 0), paused_s).metrics["ga3c/waiting_share"] < 1.0


def test_waiting_share_is_the_agents_waiting_time_since_the_last_point() -> None:
    stats = Stats()

    def share(passed_s: float, n_agents: int, *waited_s: float) -> float:
        counts = ThreadCounts(n_agents, 1, 1)
        return stats.take(passed_s, np.array(waited_s), counts)[0]["ga3c/waiting_share"]

    assert share(1.0, 2, 0.5, 0.0) == 0.5 / 2
    assert share(2.0, 2, 0.5, 1.0) == 1.0 / 2 / 2
    assert share(1.0, 2, 0.5, 1.0) == 0.0
    # An agent that ends takes nothing from the others' share, and one that begins again adds nothing old.
    assert share(1.0, 1, 0.75, 1.0) == 0.25
    assert share(1.0, 2, 0.75, 1.5) == 0.5 / 2
