"""Each family of environments is trained in by one algorithm, in `long` tests by all of them."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from tests.support.waiting import Patience, until
from tests.workers.engine.contract_runs import leftovers, small
from workers.engine.envs import make_env
from workers.engine.methods.registry import METHODS

FAMILIES = {
    environment.family: environment
    for environment in reversed(ENVIRONMENTS.values())
    if environment.family != "envpool" or find_spec("envpool")
}
"""Family of environments that are installed -> one of its environments, the first."""


def _pairs() -> Iterator[Any]:
    """Each algorithm in each family; for `make test`, one algorithm for each family, not always the same.

    Those of `make test` start no actors, which takes seconds: `test_contract.py` has them on one environment.
    """
    for n, environment in enumerate(FAMILIES.values()):
        able = [
            algorithm.id
            for algorithm in ALGORITHMS.values()
            if algorithm.learns
            if environment.observation in algorithm.observations and environment.actions in algorithm.actions
        ]
        quick = [name for name in able if "n_actors" not in ALGORITHMS[name].config.model_fields] or able
        for algorithm in able:
            mark = pytest.mark.service if algorithm == quick[n % len(quick)] else pytest.mark.long
            yield pytest.param(algorithm, environment.id, marks=mark)


@pytest.mark.parametrize(("algorithm", "environment"), list(_pairs()))
def test_algorithm_trains_in_an_environment_of_each_family(
    algorithm: str, environment: str, fork_server: None
) -> None:
    before = leftovers()
    spec = small(algorithm, environment, stop={"agent_steps": 10**6})
    env = make_env(spec.environment, spec.environment_config)
    observation_N = np.zeros((2, *env.observation_shape), env.observation_dtype)
    env.reset(0, observation_N[0])
    env.close()
    learner = METHODS[algorithm].learner(spec)
    try:
        patience, updates, agent_steps, frames = Patience(), 0, 0, 0
        # The updates and the agent steps of asynchronous methods may be reported apart.
        while patience.lasts() and not (updates and agent_steps):
            result = learner.advance(0.0, watched=False)
            updates += result.updates
            agent_steps += result.agent_steps
            frames += result.frames
            assert all(np.isfinite(value) for value in result.metrics.values())
        assert updates > 0
        assert frames >= agent_steps > 0
        action_N, value_N, policy_N = learner.policy(0).act(observation_N, np.arange(2))
        assert len(action_N) == len(value_N) == len(policy_N) == 2
        assert np.isfinite(value_N).all()
        assert policy_N.shape == (2, len(learner.action_names))
    finally:
        learner.close()
    del learner
    until(lambda: leftovers() <= before, detail=lambda: leftovers() - before)
