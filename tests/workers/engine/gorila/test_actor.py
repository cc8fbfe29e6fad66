"""What a Gorila actor does and remembers."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.run import parse_run_spec
from workers.engine.gorila.actor import Actor
from workers.engine.gorila.parameters import LocalServer, ParameterShard
from workers.engine.gorila.replica import Replica
from workers.engine.networks import action_values
from workers.engine.optimizers import FlatParameters


def actor(environment: str, size: int, n_actions: int, *, number: int = 0, **config: Any) -> Actor:
    spec = parse_run_spec(
        {
            "algorithm": "dqn",
            "environment": environment,
            "seed": 5,
            "stop": {"agent_steps": 10_000},
            "config": config,
        }
    )
    torch.manual_seed(0)
    theta = FlatParameters(action_values("mlp", (size,), n_actions)).theta
    server = LocalServer([ParameterShard(theta, spec.config)])  # type: ignore[arg-type]
    replica = Replica("mlp", (size,), n_actions, server, torch.device("cpu"))
    return Actor(spec, number, replica, whole=False)


@pytest.mark.parametrize("number", [0, 1])
def test_acts_greedily_but_with_epsilon_at_random(number: int) -> None:
    one = actor("CartPole-v1", 4, 2, number=number)
    for epsilon, least, most in ((0.0, 1.0, 1.0), (1.0, 0.44, 0.56), (0.5, 0.69, 0.81)):
        states, actions = [], []
        for _ in range(1_000):
            states.append(one.play.observation[0].copy())
            one.act(epsilon)
            actions.append(int(one.trajectory.take().slot_T["action"][0]))
        with torch.no_grad():
            best = one._replica.network(torch.from_numpy(np.stack(states))).argmax(-1).numpy()
        assert least <= np.mean(best == actions) <= most


@pytest.mark.parametrize(("clip", "remembered"), [(0.0, 1.0), (0.25, 0.25), (2.0, 1.0)])
def test_rewards_are_clipped_in_memory_and_whole_in_the_score(clip: float, remembered: float) -> None:
    one = actor("CartPole-v1", 4, 2, reward_clip=clip)
    finished = None
    while finished is None:
        finished = one.act(1.0)
    slot_T = one.trajectory.take().slot_T
    assert set(slot_T["reward"][slot_T["decided"]].tolist()) == {remembered}
    assert finished.episode_return == finished.length_steps


def test_an_episode_that_falls_is_terminal_and_one_that_is_cut_off_is_not() -> None:
    fell = actor("CartPole-v1", 4, 2)
    while fell.act(1.0) is None:
        pass
    slot_T = fell.trajectory.take().slot_T
    assert slot_T["terminal"].tolist() == [False] * (len(slot_T) - 1) + [True]
    assert slot_T["decided"].all()
    cut_off = actor("Acrobot-v1", 6, 3)
    while (finished := cut_off.act(1.0)) is None or finished.length_steps < 500:
        if finished is not None:
            cut_off.trajectory.take()  # one that did swing up at random
    slot_T = cut_off.trajectory.take().slot_T
    assert len(slot_T) == 501
    assert not slot_T["terminal"].any()
    assert slot_T["decided"].tolist() == [True] * 500 + [False], "what followed the last is seen"
