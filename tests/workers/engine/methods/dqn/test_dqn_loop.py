"""DQN's loop against Mnih et al. 2015, Algorithm 1.

The learner plays a script in this process. The test sees each minibatch and repeats the run in float64:
targets by theta_minus, gradient, centred RMSProp.
"""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from backend.specs.run import parse_run_spec
from tests.support.scripted_environment import EVERY_END, Script, Scripted
from workers.engine.methods.base import EpisodeEnd
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.methods.dqn.learner import DqnNetworks
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.replay import Batch

CONFIG: dict[str, Any] = {
    "network": "mlp",
    "learning_rate": 0.01,
    "rmsprop_decay": 0.9,
    "rmsprop_eps": 0.01,
    "gamma": 0.9,
    "reward_clip": 1.0,
    "batch_size": 16,
    "replay_capacity": 1_000,
    "learning_starts_agent_steps": 20,
    "agent_steps_per_update": 2,
    "target_update_updates": 5,
    "learner_threads": 1,
    "evaluation_episodes": 0,
}


def equation_2(network: Any, target: Any, batch: Batch) -> Tensor:
    """A loss with DQN's gradient, the error clipped to ±1."""
    state_B, after_B = (torch.from_numpy(array).double() for array in (batch.state_B, batch.next_state_B))
    following_B = target(after_B).detach().max(-1).values * torch.from_numpy(~batch.terminated_B)
    y_B = torch.from_numpy(batch.reward_B).double() + CONFIG["gamma"] * following_B
    q_B = network(state_B).gather(1, torch.from_numpy(batch.action_B)[:, None])[:, 0]
    loss: Tensor = -((y_B - q_B.detach()).clamp(-1, 1) * q_B).sum()
    return loss


def test_run_repeats_algorithm_1_and_never_learns_from_a_crash(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {"algorithm": "dqn", "seed": 1, "stop": {"agent_steps": 1_000}, "config": CONFIG}
    learner = DqnLearner(parse_run_spec(script(EVERY_END) | request))
    batches: list[Batch] = []
    compute_gradient = DqnNetworks.compute_gradient

    def recorded(networks: DqnNetworks, batch: Batch) -> dict[str, float]:
        batches.append(batch)
        return compute_gradient(networks, batch)

    monkeypatch.setattr(DqnNetworks, "compute_gradient", recorded)
    network = deepcopy(learner.network).double()
    flat = FlatParameters(network)
    target = deepcopy(network)
    target_theta = FlatParameters(target).theta
    m, g = torch.zeros_like(flat.theta), torch.zeros_like(flat.theta)
    frames = updates = 0
    episodes: list[EpisodeEnd] = []
    sampled = set()
    for _ in range(50):
        n = len(batches)
        result = learner.advance(0.0, watched=False)
        frames += result.frames
        updates += result.updates
        episodes += result.episodes
        decisions = {decision.state.tobytes(): decision for decision in Scripted.decisions}
        for k, batch in enumerate(batches[n:], start=n):
            for s, a, r, terminal, after in zip(*batch, strict=True):
                decision = decisions[s.tobytes()]
                assert decision.end != "crashed"
                assert (a, terminal) == (decision.action, decision.end == "terminated")
                assert r == np.float32(np.clip(decision.reward, -1, 1))
                assert terminal or np.array_equal(after, decision.after)
                sampled.add(s.tobytes())
            if k % CONFIG["target_update_updates"] == 0:
                target_theta.copy_(flat.theta)
            flat.dtheta.zero_()
            equation_2(network, target, batch).backward()  # type: ignore[no-untyped-call]
            m = CONFIG["rmsprop_decay"] * m + (1 - CONFIG["rmsprop_decay"]) * flat.dtheta
            g = CONFIG["rmsprop_decay"] * g + (1 - CONFIG["rmsprop_decay"]) * flat.dtheta**2
            flat.theta.sub_(CONFIG["learning_rate"] * flat.dtheta / (g - m**2 + CONFIG["rmsprop_eps"]).sqrt())
            torch.testing.assert_close(
                learner.theta.double(), flat.theta, rtol=0, atol=1e-4, msg=f"update {k}"
            )
    learner.close()
    ends = [decision.end for decision in Scripted.decisions]
    assert len(ends) == 100
    assert len(batches) == 50 - 10, "from 20 transitions on: two of the first 22 decisions crashed"
    assert updates == len(batches)
    assert frames == len(ends) - ends.count("crashed"), "no frame passes in a crash"
    last = [t for t, end in enumerate(ends) if end]
    played = [Scripted.decisions[a + 1 : b + 1] for a, b in zip([-1, *last], last, strict=False)]
    assert [episode.crashed for episode in episodes] == [
        decisions[-1].end == "crashed" for decisions in played
    ]
    for episode, of in zip(episodes, played, strict=True):
        if not episode.crashed:
            assert (episode.length_steps, episode.length_frames) == (len(of), len(of))
            assert episode.episode_return == pytest.approx(sum(decision.reward for decision in of))
    assert {decisions[state].end for state in sampled} == {"", "terminated", "truncated"}
