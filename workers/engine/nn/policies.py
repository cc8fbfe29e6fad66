"""Policies that are evaluated: sampled, recurrent, Gaussian and epsilon-greedy."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.engine.nn.devices import to_device
from workers.engine.nn.networks import ActionValues, ActorCritic, GaussianActorCritic, Lstm, features_of

EVALUATION_EPSILON = 0.05
"""Epsilon of the value-based methods' evaluations (Mnih et al. 2015)."""


def sample(logits_BA: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sample actions from softmax(logits): the first of A exponential clocks of rates pi to ring.

    What `torch.multinomial` computes, without its checks, which wait for a GPU.

    Returns:
        Actions (B,) int64 and pi (B, A).
    """
    pi_BA = logits_BA.softmax(-1)
    clock_BA = torch.empty_like(pi_BA).exponential_(generator=generator)
    return (pi_BA / clock_BA).argmax(-1), pi_BA


class _States:
    """The LSTM state of each environment; without an LSTM, `step` returns its input."""

    def __init__(self, lstm: Lstm | None) -> None:
        self._lstm = lstm
        self._states: dict[int, tuple[Tensor, Tensor]] = {}

    def forget(self, environment: int) -> None:
        self._states.pop(environment, None)

    def get(self, environment: int) -> tuple[Tensor, Tensor] | None:
        return self._states.get(environment)

    def put(self, environment: int, state: tuple[Tensor, Tensor] | None) -> None:
        if state is None:
            self.forget(environment)
        else:
            self._states[environment] = state

    def step(self, x_NF: Tensor, environment_N: NDArray[Any]) -> Tensor:
        if self._lstm is None:
            return x_NF
        zero = x_NF.new_zeros(self._lstm.cells)
        known = [self._states.get(i, (zero, zero)) for i in environment_N.tolist()]
        h_NH, c_NH = (torch.stack(part) for part in zip(*known, strict=True))
        state: tuple[Tensor, Tensor] = self._lstm(x_NF, (h_NH, c_NH))
        self._states.update(zip(environment_N.tolist(), zip(*state, strict=True), strict=True))
        return state[0]


@runtime_checkable
class PolicyWithOutputs(Protocol):
    """A policy whose network's outputs can be compared."""

    def outputs(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits, Q or the means of a continuous action (N, A), and V or max Q (N,), as `act` would find
        them."""


@runtime_checkable
class PolicyWithMemory(Protocol):
    """A policy that may remember the episode of each environment."""

    def memory(self, environment: int) -> Any:
        """What it remembers; another policy of the same network can be given it."""

    def remember(self, environment: int, memory: Any) -> None:
        """Go on with what `memory` has returned."""


class SampledPolicy:
    """Samples from pi, as the papers evaluate actor-critic agents.

    A greedy agent may never end an episode: in Breakout one that never presses FIRE.
    """

    def __init__(self, network: ActorCritic, device: torch.device, seed: int) -> None:
        self._network = network
        self._device = device
        self._generator = torch.Generator(device).manual_seed(seed)

    @torch.no_grad()
    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Sampled actions (N,), V (N,) and pi (N, A)."""
        features_NF = self._features(to_device(observation_N, self._device), environment_N)
        logits_NA, value_N = self._network.heads(features_NF)
        action_N, pi_NA = sample(logits_NA, self._generator)
        return np.asarray(action_N.cpu()), np.asarray(value_N.cpu()), np.asarray(pi_NA.cpu())

    @torch.no_grad()
    def outputs(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits (N, A) and V (N,); no action is drawn."""
        features_NF = self._features(to_device(observation_N, self._device), environment_N)
        logits_NA, value_N = self._network.heads(features_NF)
        return np.asarray(logits_NA.cpu()), np.asarray(value_N.cpu())

    def forget(self, environment: int) -> None:
        """It has no memory."""

    def _features(self, observation_N: Tensor, environment_N: NDArray[Any]) -> Tensor:
        return features_of(self._network.body, observation_N)


class RecurrentPolicy(SampledPolicy):
    """A `SampledPolicy` with an LSTM state for each environment."""

    def __init__(self, network: ActorCritic, device: torch.device, seed: int) -> None:
        super().__init__(network, device, seed)
        self._states = _States(network.lstm)

    def forget(self, environment: int) -> None:
        """Reset the LSTM state of this environment."""
        self._states.forget(environment)

    def memory(self, environment: int) -> Any:
        """The LSTM state of this environment."""
        return self._states.get(environment)

    def remember(self, environment: int, memory: Any) -> None:
        """Set the LSTM state of this environment."""
        self._states.put(environment, memory)

    def _features(self, observation_N: Tensor, environment_N: NDArray[Any]) -> Tensor:
        return self._states.step(super()._features(observation_N, environment_N), environment_N)


class GaussianPolicy:
    """Samples from a `GaussianActorCritic`, with LSTM states for each environment."""

    def __init__(self, network: GaussianActorCritic, device: torch.device, seed: int) -> None:
        self._network = network
        self._device = device
        self._generator = torch.Generator(device).manual_seed(seed)
        self._policy_states = _States(network.policy_lstm)
        self._value_states = _States(network.value_lstm)

    @torch.no_grad()
    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Sampled actions (N, D), V (N,) and mu (N, D)."""
        x, network = to_device(observation_N, self._device), self._network
        features_NF = self._policy_states.step(features_of(network.policy_body, x), environment_N)
        mu_ND, variance_N = network.policy_head(features_NF)
        noise_ND = torch.randn(mu_ND.shape, generator=self._generator, device=self._device)
        action_ND = mu_ND + variance_N.sqrt()[:, None] * noise_ND
        value_N = network.value_head(
            self._value_states.step(features_of(network.value_body, x), environment_N)
        )
        return np.asarray(action_ND.cpu()), np.asarray(value_N.cpu()), np.asarray(mu_ND.cpu())

    @torch.no_grad()
    def outputs(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """mu (N, D) and V (N,); no action is drawn."""  # noqa: D403
        x, network = to_device(observation_N, self._device), self._network
        mu_ND, _ = network.policy_head(
            self._policy_states.step(features_of(network.policy_body, x), environment_N)
        )
        value_N = network.value_head(
            self._value_states.step(features_of(network.value_body, x), environment_N)
        )
        return np.asarray(mu_ND.cpu()), np.asarray(value_N.cpu())

    def forget(self, environment: int) -> None:
        """Reset the LSTM states of this environment."""
        self._policy_states.forget(environment)
        self._value_states.forget(environment)

    def memory(self, environment: int) -> Any:
        """The LSTM states of this environment."""
        return self._policy_states.get(environment), self._value_states.get(environment)

    def remember(self, environment: int, memory: Any) -> None:
        """Set the LSTM states of this environment."""
        of_policy, of_value = memory
        self._policy_states.put(environment, of_policy)
        self._value_states.put(environment, of_value)


class EpsilonGreedyPolicy:
    """argmax_a Q(s, a), or with probability epsilon a uniformly random action.

    Mnih et al. 2015 evaluate agents with an epsilon of 0.05.
    """

    def __init__(
        self, network: ActionValues, device: torch.device, seed: int, epsilon: float = EVALUATION_EPSILON
    ) -> None:
        self._network = network
        self._device = device
        self._rng = np.random.default_rng(seed)
        self._epsilon = epsilon

    @torch.no_grad()
    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Actions (N,), max Q (N,) and Q (N, A)."""
        q_NA = np.asarray(self._network(to_device(observation_N, self._device)).cpu())
        N, A = q_NA.shape
        random_N = self._rng.random(N) < self._epsilon
        action_N = np.where(random_N, self._rng.integers(A, size=N), q_NA.argmax(-1))
        return action_N, q_NA.max(-1), q_NA

    @torch.no_grad()
    def outputs(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Q (N, A) and max Q (N,)."""
        q_NA = np.asarray(self._network(to_device(observation_N, self._device)).cpu())
        return q_NA, q_NA.max(-1)

    def forget(self, environment: int) -> None:
        """It has no memory."""
