"""What an actor of DQN or Gorila does and stores."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.run import parse_run_spec
from tests.support.waiting import Patience
from workers.engine.methods.dqn.actor import DqnActor
from workers.engine.nn.networks import action_values
from workers.engine.nn.replay import ReplayMemory


def actor(environment: str, size: int, n_actions: int, *, number: int = 0, **config: Any) -> DqnActor:
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
    return DqnActor(spec, number, action_values("mlp", (size,), n_actions))


@pytest.mark.parametrize("number", [0, 1])
def test_actor_acts_epsilon_greedily(number: int) -> None:
    dqn_actor = actor("CartPole-v1", 4, 2, number=number)
    for epsilon, least, most in ((0.0, 1.0, 1.0), (1.0, 0.44, 0.56), (0.5, 0.69, 0.81)):
        states, actions = [], []
        for _ in range(1_000):
            states.append(dqn_actor.play.observation[0].copy())
            dqn_actor.act(epsilon)
            actions.append(int(dqn_actor.trajectory.take_chunk().slot_T["action"][0]))
        with torch.no_grad():
            best = dqn_actor.network(torch.from_numpy(np.stack(states))).argmax(-1).numpy()
        assert least <= np.mean(best == actions) <= most


@pytest.mark.parametrize(("clip", "remembered"), [(0.0, 1.0), (0.25, 0.25), (2.0, 1.0)])
def test_actor_clips_rewards_in_replay_and_not_in_the_score(clip: float, remembered: float) -> None:
    dqn_actor = actor("CartPole-v1", 4, 2, reward_clip=clip)
    finished = None
    patience = Patience()
    while patience.lasts() and finished is None:
        finished = dqn_actor.act(1.0)
    assert finished is not None
    slot_T = dqn_actor.trajectory.take_chunk().slot_T
    assert set(slot_T["reward"][slot_T["acted"]].tolist()) == {remembered}
    assert finished.episode_return == finished.length_steps


def test_actor_stores_termination_but_not_truncation_as_terminal() -> None:
    fell = actor("CartPole-v1", 4, 2)
    patience = Patience()
    while patience.lasts() and fell.act(1.0) is None:
        pass
    slot_T = fell.trajectory.take_chunk().slot_T
    assert slot_T["terminal"].tolist() == [False] * (len(slot_T) - 1) + [True]
    assert slot_T["acted"].all()
    cut_off = actor("Acrobot-v1", 6, 3)
    patience = Patience()
    while patience.lasts() and ((finished := cut_off.act(1.0)) is None or finished.length_steps < 500):
        if finished is not None:
            cut_off.trajectory.take_chunk()  # it swung up by chance
    slot_T = cut_off.trajectory.take_chunk().slot_T
    assert len(slot_T) == 501
    assert not slot_T["terminal"].any()
    assert slot_T["acted"].tolist() == [True] * 500 + [False], "the last state is observed"


def test_sampled_states_are_those_that_the_actor_acted_in() -> None:
    """A state has no frame of the episode before, and the last one of a truncated episode none after it."""
    spec = parse_run_spec(
        {
            "algorithm": "dqn",
            "environment": "ALE/Breakout-v5",
            "environment_config": {"max_frames": 100},
            "stop": {"agent_steps": 1_000},
        }
    )
    dqn_actor = DqnActor(spec, 1, action_values("nips", (84, 84, 4), 4))
    memory = ReplayMemory(dqn_actor.shape, 1_000)
    taken = set()
    episodes = 0
    for _ in range(130):
        before = dqn_actor.play.observation[0].tobytes()
        episodes += dqn_actor.act(1.0) is not None
        chunk = dqn_actor.trajectory.take_chunk()
        memory.add(chunk)
        taken.add((before, int(chunk.slot_T["action"][0])))
    assert episodes > 4
    batch = memory.sample(600, np.random.default_rng(2))
    assert batch is not None
    sampled = {(s.tobytes(), int(a)) for s, a in zip(batch.state_B, batch.action_B, strict=True)}
    assert len(sampled) > 80
    assert sampled <= taken
    dqn_actor.close()
