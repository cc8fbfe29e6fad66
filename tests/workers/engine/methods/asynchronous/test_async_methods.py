"""Each asynchronous method's gradient against a slow float64 transcription of its algorithm.

The transcriptions follow Mnih et al. 2016, Algorithms 1, S1 and S2, line by line: one decision at a time, one
call of autograd a decision, from parameters that are plain matrices.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.algorithms.async_q import AsyncQConfig
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import make_env
from workers.engine.methods.asynchronous.a3c import A3C
from workers.engine.methods.asynchronous.actor import ActorContext, ActorMethodSpec
from workers.engine.methods.asynchronous.memory import FRAMES, Counts
from workers.engine.methods.asynchronous.q import (
    EPSILON_PERIOD,
    N_STEP_Q,
    ONE_STEP_Q,
    ONE_STEP_SARSA,
    Exploration,
)
from workers.engine.nn.optimizers import FlatParameters

GAMMA = 0.9


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def spec_of(algorithm: str, environment: str = "CartPole-v1", **config: Any) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": environment,
            "stop": {"agent_steps": 1_000},
            "config": {"gamma": GAMMA, **config},
        }
    )


class Played:
    """A method that has acted in made-up states, and what it did there."""

    def __init__(
        self, maker: ActorMethodSpec, spec: RunSpec, *, terminal: bool, T: int = 5, updates: int = 1
    ) -> None:
        rng = np.random.default_rng(3)
        torch.manual_seed(1)
        env = make_env(spec.environment, spec.environment_config)
        self.network: Any = maker.network(spec.config, env)
        for parameter in self.network.parameters():
            nn.init.normal_(parameter, std=0.3)
        self.flat = FlatParameters(self.network)
        self.theta_minus = torch.randn_like(self.flat.theta) * 0.3
        counts = Counts(np.zeros((65, 4), np.int64))
        self.method = maker.method(
            ActorContext(spec.config, self.network, self.theta_minus, rng, counts, env)
        )
        env.close()
        self.method.begin_episode()
        self.all_states: list[NDArray[Any]] = []
        shape = (1, *env.observation_shape)
        state = rng.normal(size=shape)
        for update in range(updates):
            self.flat.dtheta.zero_()
            self.method.begin()
            self.states, self.actions, self.rewards = [], [], []
            for _ in range(T):
                self.states.append(state.copy())
                self.actions.append(self.method.choose(state).action)
                self.rewards.append(float(rng.normal()))
                state = rng.normal(size=shape)
            self.all_states += self.states
            self.terminal = terminal and update == updates - 1
            self.after = state
            self.metrics = self.method.learn(self.rewards, None if self.terminal else state)

    def gradient(self) -> Tensor:
        return self.flat.dtheta.clone()


def features(network: nn.Module, state: NDArray[Any]) -> Tensor:
    """Two tanh layers, by hand."""
    body = network.body
    assert isinstance(body, nn.Sequential)
    x = torch.from_numpy(state[0])
    for k in (0, 2):
        layer = body[k]
        assert isinstance(layer, nn.Linear)
        x = torch.tanh(layer.weight @ x + layer.bias)
    return x


def lstm(network: Any, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Hochreiter and Schmidhuber's cell with a forget gate, gate by gate."""
    cell, H = network.lstm, len(h)
    z = cell.weight @ torch.cat([x, h]) + cell.bias
    i, f, o, g = (z[k * H : (k + 1) * H] for k in range(4))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def q_values(network: Any, state: NDArray[Any]) -> Tensor:
    q: Tensor = network.q.weight @ features(network, state) + network.q.bias
    return q


def accumulate(played: Played, objective: Tensor) -> None:
    objective.backward(retain_graph=True)  # type: ignore[no-untyped-call]


def check(played: Played, transcribed: Any) -> None:
    mine = played.gradient()
    played.flat.dtheta.zero_()
    transcribed(played)
    assert played.flat.dtheta.abs().max() > 1e-2
    torch.testing.assert_close(mine, played.flat.dtheta, rtol=0, atol=1e-6)


def algorithm_s2(played: Played, *, beta: float, value_coefficient: float) -> None:
    """From `R = 0 or V(s_t)` on, with the sign of a descent; the LSTM's state from before is fixed."""
    network, T = played.network, len(played.states)
    h = c = torch.zeros(network.lstm.cells) if network.lstm is not None else torch.zeros(0)
    outputs = []
    for n, state in enumerate([*played.all_states, played.after]):
        x = features(network, state)
        if network.lstm is not None:
            if n == len(played.all_states) - T:
                h, c = h.detach(), c.detach()
            x, c = lstm(network, x, h, c)
            h = x
        outputs.append(x)
    outputs = outputs[-T - 1 :]

    def V(x: Tensor) -> Tensor:
        v: Tensor = (network.value.weight @ x + network.value.bias)[0]
        return v

    R = 0.0 if played.terminal else V(outputs[T]).item()
    for i in range(T - 1, -1, -1):
        R = played.rewards[i] + GAMMA * R
        logits = network.logits.weight @ outputs[i] + network.logits.bias
        pi = torch.exp(logits) / torch.exp(logits).sum()
        v = V(outputs[i])
        accumulate(played, -torch.log(pi[played.actions[i]]) * (R - v.item()))
        accumulate(played, beta * (pi * torch.log(pi)).sum())
        accumulate(played, value_coefficient * (R - v) ** 2)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(("recurrent", "updates"), [(False, 1), (True, 1), (True, 3)])
def test_a3c_gradient_equals_algorithm_s2(terminal: bool, recurrent: bool, updates: int) -> None:
    settings = {"beta": 0.05, "value_coefficient": 0.7}
    spec = spec_of("a3c", recurrent=recurrent, beta=0.05, value_coefficient=0.7)
    played = Played(A3C, spec, terminal=terminal, updates=updates)
    check(played, lambda p: algorithm_s2(p, **settings))


def gaussian_s2(played: Played, *, beta: float, value_coefficient: float) -> None:
    """Algorithm S2 with the supplement's section 9: two networks, N(mu, sigma^2 I)."""
    network = played.network

    def hidden(layer: nn.Linear, state: NDArray[Any]) -> Tensor:
        return torch.clamp(layer.weight @ torch.from_numpy(state[0]) + layer.bias, min=0)

    def V(state: NDArray[Any]) -> Tensor:
        v: Tensor = (network.value.weight @ hidden(network.value_body[0], state) + network.value.bias)[0]
        return v

    R = 0.0 if played.terminal else V(played.after).item()
    for i in range(len(played.states) - 1, -1, -1):
        s, a = played.states[i], torch.tensor(np.asarray(played.actions[i], np.float64))
        R = played.rewards[i] + GAMMA * R
        x = hidden(network.policy_body[0], s)
        mu = network.mu.weight @ x + network.mu.bias
        variance = torch.log1p(torch.exp(network.variance.weight @ x + network.variance.bias))[0] + 1e-6
        density = torch.exp(-((a - mu) ** 2) / (2 * variance)) / torch.sqrt(2 * torch.pi * variance)
        v = V(s)
        accumulate(played, -torch.log(density).sum() * (R - v.item()))
        accumulate(played, beta * -0.5 * (torch.log(2 * torch.pi * variance) + 1))
        accumulate(played, value_coefficient * (R - v) ** 2)


@pytest.mark.parametrize("terminal", [False, True])
def test_continuous_a3c_gradient_equals_algorithm_s2(terminal: bool) -> None:
    settings = {"beta": 0.05, "value_coefficient": 0.7}
    spec = spec_of("a3c", "Pendulum-v1", recurrent=False, **settings)
    check(Played(A3C, spec, terminal=terminal), lambda p: gaussian_s2(p, **settings))


@pytest.mark.parametrize("environment", ["CartPole-v1", "Pendulum-v1"])
def test_restored_lstm_state_gives_the_values_and_policy_of_the_actor_that_saved_it(environment: str) -> None:
    """Pendulum's actor has one LSTM for pi and another one for V."""
    spec = spec_of("a3c", environment, recurrent=True)
    saved, resumed = Played(A3C, spec, terminal=False), Played(A3C, spec, terminal=False)
    resumed.method.begin_episode()

    def following(played: Played) -> NDArray[Any]:
        """V and pi, or mu, of the next state; the same parameters in both actors."""
        played.method.begin()
        decision = played.method.choose(saved.after)
        return np.array([decision.value, *decision.policy_A])

    resumed.method.restore(saved.method.state())
    of_saved = following(saved)
    np.testing.assert_array_equal(following(resumed), of_saved)
    resumed.method.begin_episode()
    assert (abs(following(resumed) - of_saved) > 1e-3).all(), "both depend on what was restored"


def target_values(played: Played, state: NDArray[Any]) -> Tensor:
    """Q(s, .; theta_minus)."""
    theta = played.flat.theta.clone()
    played.flat.theta.copy_(played.theta_minus)
    with torch.no_grad():
        q = q_values(played.network, state).clone()
    played.flat.theta.copy_(theta)
    return q


def algorithm_s1(played: Played) -> None:
    R = 0.0 if played.terminal else target_values(played, played.after).max().item()
    for i in range(len(played.states) - 1, -1, -1):
        R = played.rewards[i] + GAMMA * R
        accumulate(played, (R - q_values(played.network, played.states[i])[played.actions[i]]) ** 2)


def algorithm_1(played: Played) -> None:
    following = [*played.states[1:], played.after]
    for i, (s, a, r) in enumerate(zip(played.states, played.actions, played.rewards, strict=True)):
        last = i == len(played.states) - 1
        y = r
        if not (last and played.terminal):
            y = r + GAMMA * target_values(played, following[i]).max().item()
        accumulate(played, (y - q_values(played.network, s)[a]) ** 2)


def sarsa(played: Played) -> None:
    following = [*played.states[1:], played.after]
    actions = [*played.actions[1:], played.method.choose(played.after).action]
    for i, (s, a, r) in enumerate(zip(played.states, played.actions, played.rewards, strict=True)):
        last = i == len(played.states) - 1
        y = r
        if not (last and played.terminal):
            y = r + GAMMA * target_values(played, following[i])[actions[i]].item()
        accumulate(played, (y - q_values(played.network, s)[a]) ** 2)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    ("algorithm", "maker", "transcribed"),
    [
        ("n_step_q", N_STEP_Q, algorithm_s1),
        ("one_step_q", ONE_STEP_Q, algorithm_1),
        ("one_step_sarsa", ONE_STEP_SARSA, sarsa),
    ],
)
def test_value_method_gradients_equal_their_algorithms(
    terminal: bool, algorithm: str, maker: ActorMethodSpec, transcribed: Any
) -> None:
    check(Played(maker, spec_of(algorithm), terminal=terminal, updates=2), transcribed)


def test_sarsa_takes_the_action_of_its_target() -> None:
    played = Played(ONE_STEP_SARSA, spec_of("one_step_sarsa"), terminal=False)
    chosen = played.method.state()["next_action"]
    assert chosen in (0, 1)
    assert played.method.choose(played.after).action == chosen
    assert played.method.state()["next_action"] is None


def test_sarsa_drops_the_next_action_at_an_episodes_end() -> None:
    played = Played(ONE_STEP_SARSA, spec_of("one_step_sarsa"), terminal=False)
    played.method.begin_episode()
    assert played.method.state()["next_action"] is None


def test_a3c_samples_actions_from_pi() -> None:
    played = Played(A3C, spec_of("a3c"), terminal=False)
    state = np.zeros((1, 4))
    choices = [played.method.choose(state) for _ in range(4_000)]
    pi = choices[0].policy_A
    share = np.mean([choice.action for choice in choices])
    assert abs(share - pi[1]) <= 4 * (pi[0] * pi[1] / 4_000) ** 0.5
    assert 0.02 < pi[1] < 0.98


def exploration(frames: int, seed: int = 0) -> Exploration:
    counts = Counts(np.zeros((65, 4), np.int64))
    counts.restore({FRAMES: frames})
    config = spec_of("one_step_q", exploration_anneal_frames=4_000_000).config
    assert isinstance(config, AsyncQConfig)
    return Exploration(config, np.random.default_rng(seed), counts)


def test_final_epsilon_is_sampled_with_the_papers_probabilities() -> None:
    explored = exploration(4_000_000)
    drawn = []
    for _ in range(1_000):
        for _ in range(EPSILON_PERIOD):
            explored.step()
        drawn.append(explored.epsilon)
    for target, p in ((0.1, 0.4), (0.01, 0.3), (0.5, 0.3)):
        share = np.mean([epsilon == target for epsilon in drawn])
        assert abs(share - p) <= 4 * (p * (1 - p) / 1_000) ** 0.5, target


def test_final_epsilon_is_kept_for_its_period() -> None:
    explored = exploration(4_000_000)
    seen = []
    for _ in range(20 * EPSILON_PERIOD):
        explored.step()
        seen.append(explored.epsilon)
    changes = [n for n in range(1, len(seen)) if seen[n] != seen[n - 1]]
    assert changes
    assert all(n % EPSILON_PERIOD == 0 for n in changes)


@pytest.mark.parametrize(("frames", "fallen"), [(0, 0.0), (1_000_000, 0.25), (9_000_000, 1.0)])
def test_epsilon_is_annealed_from_one(frames: int, fallen: float) -> None:
    seen = set()
    for seed in range(20):
        explored = exploration(frames, seed)
        explored.step()
        seen.add(round(explored.epsilon, 9))
    assert seen == {round(1 + fallen * (target - 1), 9) for target in (0.1, 0.01, 0.5)}
