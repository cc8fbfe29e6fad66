"""Scores of an agent from fresh starts."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.specs.run import MAX_EVALUATION_ENVIRONMENTS, RunSpec, parse_run_spec
from workers.engine.envs import make_world
from workers.engine.evaluation import STREAM, EvaluationInterrupted, evaluate
from workers.engine.seeds import episode_seed


class Constant:
    """Always the same action; remembers which episodes it was told have ended."""

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
    world = make_world(spec.environment, spec.environment_config)
    observation = np.empty(world.observation_shape, world.observation_dtype)
    world.reset(episode_seed(seed, STREAM, k), observation)
    total, ended = 0.0, False
    while not ended:
        step = world.step(0, observation)
        total, ended = total + step.reward, step.ended
    world.close()
    return total


@pytest.mark.parametrize("episodes", [1, 3, MAX_EVALUATION_ENVIRONMENTS + 7])
def test_episode_k_is_the_same_however_many_are_played_beside_it(episodes: int) -> None:
    policy = Constant()
    result = evaluate(policy, cartpole(), episodes=episodes, seed=5, processes=2)
    assert result.returns == [alone(5, k) for k in range(episodes)]
    assert result.lengths_frames == result.returns, "one frame and one point a decision"
    assert result.mean_return == np.mean(result.returns)
    assert len(policy.forgotten) == episodes
    assert result.first_episode.episode_return == result.returns[0]


def test_who_wants_the_engine_back_gets_it() -> None:
    asked = iter([False, False, True])
    with pytest.raises(EvaluationInterrupted):
        evaluate(Constant(), cartpole(), episodes=4, seed=0, processes=1, interrupted=lambda: next(asked))
    assert next(asked, None) is None
