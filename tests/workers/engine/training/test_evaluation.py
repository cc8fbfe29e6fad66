"""Scores of an agent from fresh starts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.specs.algorithms.memory import MAX_EVALUATION_ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.waiting import rounds
from workers.engine.envs import make_env
from workers.engine.nn.seeds import episode_seed
from workers.engine.training.evaluation import STREAM, EvaluationInterrupted, GreedyPolicy, evaluate


class Constant:
    """Always the same action; remembers which episodes were reported to it as ended."""

    def __init__(self) -> None:
        self.forgotten: list[int] = []

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        assert len(observation_N) == len(environment_N) == len(set(environment_N.tolist()))
        n = len(observation_N)
        return np.zeros(n, np.int64), np.zeros(n), np.full((n, 2), 0.5)

    def forget(self, environment: int) -> None:
        self.forgotten.append(environment)


def cartpole() -> RunSpec:
    return parse_run_spec(
        {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 1}, "config": {}}
    )


def alone(seed: int, k: int) -> float:
    """The return of the k-th episode, played by itself."""
    spec = cartpole()
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(episode_seed(seed, STREAM, k), observation)
    total = 0.0
    for _ in rounds():
        step = env.step(0, observation)
        total += step.reward
        if step.episode_over:
            break
    env.close()
    return total


@pytest.mark.service
@pytest.mark.parametrize("episodes", [1, 3, MAX_EVALUATION_ENVIRONMENTS + 7])
def test_evaluation_episode_k_does_not_depend_on_the_number_of_episodes(episodes: int) -> None:
    policy = Constant()
    result = evaluate(policy, cartpole(), episodes=episodes, seed=5, processes=2)
    assert result.returns == [alone(5, k) for k in range(episodes)]
    assert result.lengths_frames == result.returns, "one frame and one point a decision"
    assert result.seeds == [episode_seed(5, STREAM, k) for k in range(episodes)]
    assert result.mean_return == np.mean(result.returns)
    assert len(policy.forgotten) == episodes
    assert result.first_episode.episode_return == result.returns[0]


@pytest.mark.service
def test_evaluate_raises_when_interrupted() -> None:
    asked = iter([False, False, True])
    with pytest.raises(EvaluationInterrupted):
        evaluate(Constant(), cartpole(), episodes=4, seed=0, processes=1, interrupted=lambda: next(asked))
    assert next(asked, None) is None


def breakout(**environment_config: Any) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "ALE/Breakout-v5",
            "environment_config": environment_config,
            "stop": {"agent_steps": 1},
        }
    )


class Waiting(Constant):
    """Never serves the ball, so that only the cap ends an episode."""

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        n = len(observation_N)
        return np.zeros(n, np.int64), np.zeros(n), np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))


@pytest.mark.long
@pytest.mark.parametrize(
    ("protocol", "lengths"),
    [
        # The cap counts the no-ops, the length does not.
        ("noop_starts_5min", range(18_000 - 30, 18_000)),
        ("sticky_actions_5min", [18_000]),
        ("noop_starts", range(108_000 - 30, 108_000)),
    ],
)
def test_evaluation_ends_at_the_cap_of_its_protocol(protocol: str, lengths: Sequence[int]) -> None:
    result = evaluate(Waiting(), breakout(max_frames=200), episodes=1, seed=0, processes=0, protocol=protocol)
    assert result.protocol == protocol
    assert result.lengths_frames[0] in lengths


class Watcher(Constant):
    """Keeps what it observed."""

    def __init__(self) -> None:
        super().__init__()
        self.observed: list[NDArray[Any]] = []

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        self.observed.append(observation_N[0].copy())
        n = len(observation_N)
        return np.full(n, 1 + len(self.observed) % 3), np.zeros(n), np.zeros((n, 4))


@pytest.mark.parametrize("protocol", ["noop_starts", "sticky_actions_5min"])
def test_evaluation_plays_the_exact_environment_of_its_protocol(protocol: str) -> None:
    """Not the training's: that has other no-ops, sticky actions and preprocessing."""
    spec = breakout(noop_max=7, sticky_actions=0.5, frame_maximum="luminance")
    watcher = Watcher()
    with pytest.raises(EvaluationInterrupted):
        evaluate(
            watcher,
            spec,
            episodes=1,
            seed=3,
            processes=0,
            protocol=protocol,
            interrupted=lambda: len(watcher.observed) == 40,
        )
    config = {
        "noop_starts": AtariConfig(frame_maximum="rgb"),
        "sticky_actions_5min": AtariConfig(frame_maximum="rgb", noop_max=0, sticky_actions=0.25),
    }[protocol]
    env = make_env(spec.environment, config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(episode_seed(3, STREAM, 0), observation)
    for k, observed in enumerate(watcher.observed):
        np.testing.assert_array_equal(observed, observation)
        env.step(1 + (k + 1) % 3, observation)
    env.close()


@pytest.mark.parametrize(
    ("action", "preference", "best"),
    [
        (np.array([0, 1]), np.array([[0.2, 0.8], [0.9, 0.1]]), [1, 0]),
        (np.array([[0.3], [0.4]]), np.array([[-1.0], [2.0]]), [[-1.0], [2.0]]),
    ],
    ids=["discrete", "continuous"],
)
def test_greedy_policy_takes_the_best_action(
    action: NDArray[Any], preference: NDArray[Any], best: list[Any]
) -> None:
    class Fixed(Constant):
        def act(
            self, observation_N: NDArray[Any], environment_N: NDArray[Any]
        ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
            return action, np.zeros(2), preference

    fixed = Fixed()
    greedy = GreedyPolicy(fixed)
    chosen, _, _ = greedy.act(np.zeros((2, 4)), np.arange(2))
    np.testing.assert_array_equal(chosen, best)
    greedy.forget(1)
    assert fixed.forgotten == [1]


def test_greedy_protocol_plays_the_best_action() -> None:
    class Torn(Constant):
        """Acts badly, though it knows better: to the right whenever the pole leans to the left."""

        def act(
            self, observation_N: NDArray[Any], environment_N: NDArray[Any]
        ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
            right_N = (observation_N[:, 2] + observation_N[:, 3] > 0).astype(np.int64)
            return 1 - right_N, np.zeros(len(right_N)), np.eye(2)[right_N]

    def score(protocol: str) -> float:
        return evaluate(Torn(), cartpole(), episodes=2, seed=0, processes=0, protocol=protocol).mean_return

    assert score("plain") < 15 < 100 < score("plain_greedy")
