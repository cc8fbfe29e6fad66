"""Each asynchronous method's gradient against a slow float64 transcription of its algorithm.

The transcriptions follow Mnih et al. 2016, Algorithms 1, S1 and S2.
"""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.algorithms.async_q import AsyncQConfig
from tests.workers.engine.methods.asynchronous.played import (
    GAMMA,
    Played,
    accumulate,
    check,
    features,
    q_values,
    spec_of,
    target_values,
)
from workers.engine.methods.asynchronous.memory import FRAMES, Counts
from workers.engine.methods.asynchronous.q import EPSILON_PERIOD, Exploration

pytestmark = pytest.mark.usefixtures("float64")


def lstm(network: Any, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Hochreiter and Schmidhuber's cell with a forget gate, gate by gate."""
    cell, H = network.lstm, len(h)
    z = cell.weight @ torch.cat([x, h]) + cell.bias
    i, f, o, g = (z[k * H : (k + 1) * H] for k in range(4))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


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
    played = Played(spec, terminal=terminal, updates=updates)
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
    check(Played(spec, terminal=terminal), lambda p: gaussian_s2(p, **settings))


@pytest.mark.parametrize("environment", ["CartPole-v1", "Pendulum-v1"])
def test_restored_lstm_state_gives_the_values_and_policy_of_the_actor_that_saved_it(environment: str) -> None:
    """Pendulum's actor has one LSTM for pi and another one for V."""
    spec = spec_of("a3c", environment, recurrent=True)
    saved, resumed = Played(spec, terminal=False), Played(spec, terminal=False)
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
    ("algorithm", "transcribed"),
    [("n_step_q", algorithm_s1), ("one_step_q", algorithm_1), ("one_step_sarsa", sarsa)],
)
def test_value_method_gradients_equal_their_algorithms(
    terminal: bool, algorithm: str, transcribed: Any
) -> None:
    check(Played(spec_of(algorithm), terminal=terminal, updates=2), transcribed)


def test_sarsa_takes_the_action_of_its_target() -> None:
    played = Played(spec_of("one_step_sarsa"), terminal=False)
    chosen = played.method.state()["next_action"]
    assert chosen in (0, 1)
    assert played.method.choose(played.after).action == chosen
    assert played.method.state()["next_action"] is None


def test_sarsa_drops_the_next_action_at_an_episodes_end() -> None:
    played = Played(spec_of("one_step_sarsa"), terminal=False)
    played.method.begin_episode()
    assert played.method.state()["next_action"] is None


def test_a3c_samples_actions_from_pi() -> None:
    played = Played(spec_of("a3c"), terminal=False)
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
