"""The random agent: uniform actions in every kind of action space, held for six frames at 10 Hz."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.specs.events import ReportEvent
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.engine_process import logged
from tests.workers.engine.training.training_runs import only
from workers.engine.envs.atari import AtariEnv
from workers.engine.envs.base import Box, Discrete
from workers.engine.methods.random.random import RandomLearner, UniformActions, UniformPolicy
from workers.engine.training import checkpoint
from workers.engine.training.evaluation import GreedyPolicy, evaluate, load_policy
from workers.engine.training.loop import Training

PONG = "ALE/Pong-v5"


def spec_of(environment: str, **request: Any) -> RunSpec:
    body = {"algorithm": "random", "environment": environment, "stop": {"agent_steps": 1}}
    return parse_run_spec(body | request)


def shares(action_N: NDArray[Any], n: int) -> NDArray[Any]:
    return np.bincount(action_N, minlength=n) / len(action_N)


@pytest.mark.parametrize("is_greedy", [False, True])
def test_each_action_is_equally_likely_also_in_greedy_protocols(is_greedy: bool) -> None:
    policy: Any = UniformPolicy(Discrete(6), np.random.default_rng(0))
    if is_greedy:
        policy = GreedyPolicy(policy)
    action_N, value_N, pi_NA = policy.act(np.zeros((60_000, 4)), np.arange(60_000))
    # Five standard deviations of a share of 1 / 6.
    np.testing.assert_allclose(shares(action_N, 6), 1 / 6, atol=5 * (5 / 36 / 60_000) ** 0.5)
    np.testing.assert_allclose(pi_NA.sum(1), 1, rtol=1e-6)
    assert not value_N.any()


@pytest.mark.parametrize("is_greedy", [False, True])
def test_continuous_actions_are_uniform_within_their_bounds(is_greedy: bool) -> None:
    space = Box((-1.0, 0.0), (1.0, 6.0))
    policy: Any = UniformPolicy(space, np.random.default_rng(0))
    if is_greedy:
        policy = GreedyPolicy(policy)
    action_ND, _, _ = policy.act(np.zeros((60_000, 4)), np.arange(60_000))
    low_D, high_D = np.array(space.low), np.array(space.high)
    assert (action_ND >= low_D).all()
    assert (action_ND <= high_D).all()
    unit_ND = (action_ND - low_D) / (high_D - low_D)
    for d in range(2):
        tenths = shares((unit_ND[:, d] * 10).astype(int).clip(max=9), 10)
        np.testing.assert_allclose(tenths, 0.1, atol=5 * (0.09 / 60_000) ** 0.5)
    mean_ND, _ = UniformPolicy(space, np.random.default_rng(0)).outputs(np.zeros((1, 4)), np.arange(1))
    np.testing.assert_allclose(mean_ND, [[0.0, 3.0]])


def test_action_space_without_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="a random action needs bounds"):
        UniformActions(Box((-np.inf,), (1.0,)))


def test_at_10_hz_the_emulator_has_a_new_action_every_sixth_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = RandomLearner(spec_of(PONG, environment_config={"frame_skip": 6}))
    env = learner.play.env
    assert isinstance(env, AtariEnv)
    held: list[Any] = []
    emulator = env.ale

    class Recorded:
        def act(self, action: Any) -> float:
            held.append(action)
            return emulator.act(action)

        def __getattr__(self, name: str) -> Any:
            return getattr(emulator, name)

    monkeypatch.setattr(env, "ale", Recorded())
    results = [learner.advance(0.0, watched=False) for _ in range(50)]
    learner.close()
    assert [(result.agent_steps, result.frames, result.updates) for result in results] == [(1, 6, 0)] * 50
    decisions = [held[at : at + 6] for at in range(0, len(held), 6)]
    assert len(decisions) == 50
    assert all(len(set(frames)) == 1 for frames in decisions)
    assert len({frames[0] for frames in decisions}) == 6, "every action of the minimal set"


@pytest.mark.parametrize("environment", ["CartPole-v1", "Pendulum-v1"])
def test_run_takes_one_decision_and_its_checkpoint_is_evaluated_and_resumed(
    environment: str, tmp_path: Path
) -> None:
    spec = spec_of(environment, config={"evaluation_episodes": 0}, seed=3)
    ended = Training(spec, tmp_path).run()
    assert ended.state == "finished", ended.traceback
    last = only(ReportEvent, logged(tmp_path))[-1]
    assert (last.agent_steps, last.updates) == (1, 0)
    name = checkpoint.newest(tmp_path / "checkpoints")
    assert name is not None
    path = tmp_path / "checkpoints" / name
    scored = evaluate(load_policy(spec, path, 5), spec, episodes=20, seed=5, processes=0)
    # 22.2 in the mean, with a deviation of 11.7 an episode; -1,230 with one of 300.
    low, high = (15, 32) if environment == "CartPole-v1" else (-1_600, -900)
    assert low < scored.mean_return < high
    resumed = RandomLearner(spec, restored=True)
    resumed.restore(checkpoint.load(path)["learner"])
    unbroken = RandomLearner(spec)
    unbroken.advance(0.0, watched=False)
    for _ in range(100):
        for learner in (resumed, unbroken):
            learner.advance(0.0, watched=False)
        np.testing.assert_array_equal(resumed.play.observation, unbroken.play.observation)
    resumed.close()
    unbroken.close()


def test_checkpoint_of_another_action_space_is_refused() -> None:
    learner, other = RandomLearner(spec_of("CartPole-v1")), RandomLearner(spec_of("Acrobot-v1"))
    with pytest.raises(ValueError, match="the checkpoint is of another network"):
        other.restore(learner.state())
    learner.close()
    other.close()
