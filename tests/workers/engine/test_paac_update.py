"""One update of PAAC against a transcription of Algorithm 1, in a world whose every step is given."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.specs.run import parse_run_spec
from workers.engine.algorithms import paac_share
from workers.engine.algorithms.paac import PAAC
from workers.engine.algorithms.paac_master import Master
from workers.engine.envs.vector import FinishedEpisode

T, B, ACTIONS, GAMMA = 3, 2, 2, 0.9
REWARD_TB = np.array([[1.0, 5.0], [-7.0, 0.5], [0.25, 2.0]], np.float32)
TERMINAL_TB = np.array([[False, False], [True, False], [False, False]])
TRUNCATED_TB = np.array([[False, True], [False, False], [False, False]])
"""Environment 0 ends at decision 1; environment 1 is cut off at decision 0."""


class ScriptedWorld:
    """Stands in for `VectorWorld`: the same arrays, filled from the tables above."""

    def __init__(self, *_: Any, **__: Any) -> None:
        rng = np.random.default_rng(0)
        self.observation_TB = rng.normal(size=(T + 1, B, 4)).astype(np.float32)
        self.final_TB = rng.normal(size=(T, B, 4)).astype(np.float32)
        self.action_TB = np.zeros((T, B), np.int64)
        self.t = 0
        self.shared = SimpleNamespace(
            observation_SB=np.zeros((2, B, 4), np.float32),
            final_observation_B=np.zeros((B, 4), np.float32),
            frames_B=np.ones(B, np.int32),
            lives_B=np.zeros(B, np.int8),
        )

    def reset(self) -> None:
        self.shared.observation_SB[0] = self.observation_TB[0]

    def step(self, action_B: NDArray[np.int64], slot: int) -> list[FinishedEpisode]:
        t, shared = self.t, self.shared
        self.action_TB[t] = action_B
        shared.observation_SB[slot] = self.observation_TB[t + 1]
        shared.final_observation_B[:] = self.final_TB[t]
        shared.reward_B = REWARD_TB[t].copy()
        shared.terminal_B, shared.truncated_B = TERMINAL_TB[t].copy(), TRUNCATED_TB[t].copy()
        shared.ended_B = shared.terminal_B | shared.truncated_B
        self.t += 1
        return [FinishedEpisode(int(i), 0, 1.0, 1, 1) for i in np.flatnonzero(shared.ended_B)]

    def watch(self, environment: int | None) -> None: ...
    def take_picture(self) -> None: ...
    def close(self) -> None: ...


def learner(monkeypatch: pytest.MonkeyPatch, **config: Any) -> tuple[Master, ScriptedWorld]:
    monkeypatch.setattr(paac_share, "VectorWorld", ScriptedWorld)
    settings = {"n_e": B, "t_max": T, "gamma": GAMMA, "beta": 0.02, "max_grad_norm": 1e6} | config
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "CartPole-v1",
            "stop": {"agent_steps": 100},
            "config": settings,
        }
    )
    made = Master(spec, PAAC)
    [share] = made._shares
    return made, share._world  # type: ignore[union-attr, return-value]


def gradient(paac: Master, world: ScriptedWorld, reward_TB: NDArray[np.float32]) -> torch.Tensor:
    """Algorithm 1, lines 11 to 17, decision by decision, in float64."""
    c, network = paac.config, paac.network.double()
    parameters = list(network.parameters())
    for parameter in parameters:
        parameter.grad = None

    def V(observation: NDArray[np.float32]) -> float:
        with torch.no_grad():
            return float(network(torch.from_numpy(observation).double()[None])[1])

    loss = torch.zeros((), dtype=torch.float64)
    for e in range(B):
        R = V(world.observation_TB[T, e])
        for t in reversed(range(T)):
            if TERMINAL_TB[t, e]:
                R = 0.0
            elif TRUNCATED_TB[t, e]:
                R = V(world.final_TB[t, e])
            R = float(reward_TB[t, e]) + c.gamma * R
            logits, v = network(torch.from_numpy(world.observation_TB[t, e]).double()[None])
            log_pi = logits[0].log_softmax(0)
            advantage = R - float(v.detach())
            entropy = -(log_pi.exp() * log_pi).sum()
            loss = loss - log_pi[world.action_TB[t, e]] * advantage - c.beta * entropy
            loss = loss + c.value_coefficient * (R - v[0]) ** 2
    (loss / (B * T)).backward()  # type: ignore[no-untyped-call]
    return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])


@pytest.mark.parametrize(
    ("config", "reward_TB"),
    [({"reward_clip": 0.0}, REWARD_TB), ({"reward_clip": 1.0}, np.clip(REWARD_TB, -1, 1))],
)
def test_gradient_is_that_of_algorithm_1(
    monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], reward_TB: NDArray[np.float32]
) -> None:
    paac, world = learner(monkeypatch, value_coefficient=0.3, **config)
    [share] = paac._shares
    kept = share.finish().dtheta.clone().double()
    torch.testing.assert_close(kept, gradient(paac, world, reward_TB), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("schedule", "progress", "rate"),
    [("constant", 0.75, 0.01), ("linear", 0.75, 0.0025), ("linear", 0.0, 0.01)],
)
def test_the_step_is_scaled_clipped_and_annealed(
    monkeypatch: pytest.MonkeyPatch, schedule: str, progress: float, rate: float
) -> None:
    settings = {"learning_rate": 0.01, "learning_rate_schedule": schedule, "rmsprop_eps": 0.1}
    paac, _ = learner(monkeypatch, gradient_scale=5.0, max_grad_norm=0.5, rmsprop_decay=0.9, **settings)
    before = paac._flat.theta.clone().double()
    advance = paac.advance(progress, watched=False)
    unscaled, _ = learner(monkeypatch)
    [share] = unscaled._shares
    d = 5.0 * share.finish().dtheta.double()
    assert advance.internals["optim/grad_norm"] == pytest.approx(float(d.norm()), rel=1e-5)
    assert advance.internals["optim/learning_rate"] == pytest.approx(rate)
    assert float(d.norm()) > 0.5
    d *= 0.5 / d.norm()
    after = before - rate * d / torch.sqrt(0.1 * d * d + 0.1)
    torch.testing.assert_close(paac._flat.theta.double(), after, rtol=0, atol=1e-6)
