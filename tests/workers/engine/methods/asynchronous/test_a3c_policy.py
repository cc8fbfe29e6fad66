"""The policy by which A3C is evaluated, against the equations of its network."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.algorithms.a3c import A3CConfig
from backend.specs.run import parse_run_spec
from workers.engine.envs import make_env
from workers.engine.methods.asynchronous.a3c import METHOD


@pytest.mark.parametrize(
    ("environment", "cells"),
    [("CartPole-v1", {"lstm": 256}), ("HalfCheetah-v5", {"policy_lstm": 128, "value_lstm": 128})],
)
def test_lstm_has_the_papers_number_of_cells(environment: str, cells: dict[str, int]) -> None:
    """Mnih et al. 2016, supplement: 256, and 128 for continuous actions."""
    fields = {"algorithm": "a3c", "environment": environment, "stop": {"agent_steps": 1}}
    spec = parse_run_spec(fields | {"config": {"recurrent": True}})
    assert isinstance(spec.config, A3CConfig)
    env = make_env(spec.environment, spec.environment_config)
    network = METHOD.network(spec.config, env)
    env.close()
    assert {name: getattr(network, name).cells for name in cells} == cells


@pytest.mark.parametrize("recurrent", [False, True])
def test_a3c_is_evaluated_with_its_lstm_if_it_has_one(recurrent: bool) -> None:
    spec = parse_run_spec(
        {
            "algorithm": "a3c",
            "environment": "CartPole-v1",
            "stop": {"agent_steps": 1},
            "config": {"recurrent": recurrent},
        }
    )
    assert isinstance(spec.config, A3CConfig)
    env = make_env(spec.environment, spec.environment_config)
    torch.manual_seed(0)
    network: Any = METHOD.network(spec.config, env)
    env.close()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    policy = METHOD.policy(network, torch.device("cpu"), 0)
    rng = np.random.default_rng(0)
    state = None
    for _ in range(3):
        observation = rng.normal(size=(1, 4)).astype(np.float32)
        _, value, pi = policy.act(observation, np.array([0]))
        with torch.no_grad():
            features = network.body(torch.from_numpy(observation))
            if recurrent:
                zero = features.new_zeros(1, network.lstm.cells)
                state = network.lstm(features, state or (zero, zero))
                features = state[0]
            logits, v = network.heads(features)
        np.testing.assert_allclose(value, v.numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(pi, logits.softmax(-1).numpy(), rtol=1e-4, atol=1e-6)
