"""Slow float64 transcriptions of the asynchronous methods: Mnih et al. 2016, Algorithms 1, S1 and S2.

They take one state at a time and compute from parameters that are plain matrices, and use no code of the
engine but the network's parameters. Each returns what an update minimises; autograd differentiates it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

Network = Any


class Batch(NamedTuple):
    """What an update learns from, by the papers' rules."""

    state_T: Sequence[Any]
    action_T: Sequence[Any]
    reward_T: Sequence[float]
    after: Any
    """The state after the last one; None if nothing follows it."""
    next_action: Any
    """The action in it."""
    begins: bool
    """Whether its first state is the first of an episode."""


class Features:
    """What a body and, if there is one, its LSTM make of the states of one update after another.

    The LSTM's state continues from one update to the next, where the gradient stops, and is 0 at the
    beginning of an episode.
    """

    def __init__(self) -> None:
        self._state: tuple[Tensor, Tensor] | None = None

    def of(self, batch: Batch, body: Network, lstm: Network) -> tuple[list[Tensor], Tensor | None]:
        """Those of each state, and of the state after them, if there is one."""
        x_T = [body_equations(body, state) for state in batch.state_T]
        x_after = None if batch.after is None else body_equations(body, batch.after)
        if lstm is None:
            return x_T, x_after
        if batch.begins or self._state is None:
            self._state = (torch.zeros(lstm.cells).double(), torch.zeros(lstm.cells).double())
        h, c = self._state[0].detach(), self._state[1].detach()
        h_T = []
        for x in x_T:
            h, c = lstm_equations(lstm, x, h, c)
            h_T.append(h)
        self._state = (h, c)
        return h_T, None if x_after is None else lstm_equations(lstm, x_after, h, c)[0]


Objective = Callable[[Batch, Network, Network, Any, defaultdict[str, Features]], Tensor]
"""What is minimised: of a batch, by the network of theta and that of theta_minus, under a config, with the
`Features` of each part of the network, which continue from the batch before."""


def affine(layer: nn.Linear, x: Tensor) -> Tensor:
    return layer.weight @ x + layer.bias


def body_equations(body: nn.Sequential, state: Any) -> Tensor:
    """Layers of tanh or rectified units."""
    x = torch.from_numpy(np.asarray(state, np.float64)).flatten()
    for layer in body:
        if isinstance(layer, nn.Linear):
            x = affine(layer, x)
        else:
            x = torch.tanh(x) if isinstance(layer, nn.Tanh) else torch.clamp(x, min=0)
            assert isinstance(layer, nn.Tanh | nn.ReLU)
    return x


def lstm_equations(lstm: Network, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The new h and c: Hochreiter and Schmidhuber's cell with a forget gate, gate by gate."""
    H = len(h)
    z = lstm.weight @ torch.cat([x, h]) + lstm.bias
    i, f, o, g = (z[k * H : (k + 1) * H] for k in range(4))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def q_values(network: Network, state: Any) -> Tensor:
    """Q(s, .)."""
    return affine(network.q, body_equations(network.body, state))


def returns(batch: Batch, bootstrap: float, gamma: float) -> list[float]:
    """R <- r_i + gamma R, backwards."""
    R_T, R = [], bootstrap
    for r in reversed(batch.reward_T):
        R = r + gamma * R
        R_T.append(R)
    return R_T[::-1]


def algorithm_s2(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    """From `R = 0 or V(s_t)` on, with the sign of a descent; the LSTM's state from before is fixed."""
    x_T, after = features[""].of(batch, network.body, network.lstm)
    R = 0.0 if after is None else affine(network.value, after).item()
    total = torch.zeros(())
    for action, x, R_t in zip(batch.action_T, x_T, returns(batch, R, c.gamma), strict=True):
        logits = affine(network.logits, x)
        pi = torch.exp(logits) / torch.exp(logits).sum()
        v = affine(network.value, x)[0]
        total = total - torch.log(pi[int(action)]) * (R_t - v.item())
        total = total + c.beta * (pi * torch.log(pi)).sum()
        total = total + c.value_coefficient * (R_t - v) ** 2
    return total


def gaussian_s2(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    """Algorithm S2 with the supplement's section 9: two networks, N(mu, sigma^2 I)."""
    policy_T, _ = features["policy"].of(batch, network.policy_body, network.policy_lstm)
    value_T, after = features["value"].of(batch, network.value_body, network.value_lstm)
    R = 0.0 if after is None else affine(network.value, after).item()
    total = torch.zeros(())
    R_T = returns(batch, R, c.gamma)
    for taken, policy, value, R_t in zip(batch.action_T, policy_T, value_T, R_T, strict=True):
        a = torch.from_numpy(np.asarray(taken, np.float64))
        mu = affine(network.mu, policy)
        variance = torch.log1p(torch.exp(affine(network.variance, policy)))[0] + 1e-6
        density = torch.exp(-((a - mu) ** 2) / (2 * variance)) / torch.sqrt(2 * torch.pi * variance)
        v = affine(network.value, value)[0]
        total = total - torch.log(density).sum() * (R_t - v.item())
        total = total + c.beta * -0.5 * (torch.log(2 * torch.pi * variance) + 1)
        total = total + c.value_coefficient * (R_t - v) ** 2
    return total


def squared(batch: Batch, network: Network, y_T: Sequence[float]) -> Tensor:
    total = torch.zeros(())
    for state, action, y in zip(batch.state_T, batch.action_T, y_T, strict=True):
        total = total + (y - q_values(network, state)[int(action)]) ** 2
    return total


def algorithm_s1(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    R = 0.0 if batch.after is None else q_values(target, batch.after).max().item()
    return squared(batch, network, returns(batch, R, c.gamma))


def one_step(batch: Batch, network: Network, c: Any, value: Callable[[Any, Any], float]) -> Tensor:
    following = list(zip(batch.state_T, batch.action_T, strict=True))[1:]
    following += [] if batch.after is None else [(batch.after, batch.next_action)]
    y_T = list(batch.reward_T)
    for i, (state, action) in enumerate(following):
        y_T[i] += c.gamma * value(state, action)
    return squared(batch, network, y_T)


def algorithm_1(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    return one_step(batch, network, c, lambda state, _: q_values(target, state).max().item())


def sarsa(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    return one_step(batch, network, c, lambda state, action: q_values(target, state)[int(action)].item())
