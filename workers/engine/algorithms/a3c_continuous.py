"""A3C for continuous actions (Mnih et al. 2016, supplement, section 9).

The policy is a spherical normal distribution: mu is linear in the last layer, one sigma^2 for all numbers the
softplus of something linear. Policy and value networks share nothing: each has one layer of 200 ReLUs for a
state, or two convolutions for pixels, and with `recurrent` 128 LSTM cells behind it. With t_max = 0, the
default here, each episode is one update, R begins at 0 and nothing is bootstrapped.

Differences from the paper: those of `workers.engine.algorithms.a3c`; a value's weight is
`value_coefficient` though it has a network of its own; the world takes an action outside its bounds for the
bound, while log pi is of the action as it was drawn.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.a3c import A3CConfig
from backend.specs.algorithms.asynchronous import AsynchronousConfig
from workers.engine.algorithms.hogwild_actor import Choice, Tools
from workers.engine.losses import gaussian_actor_critic_loss
from workers.engine.networks import GaussianActorCritic
from workers.engine.returns import n_step_returns
from workers.engine.unroll import Unroll

LSTM_CELLS = 128


class ContinuousActorCritic:
    """The method in an actor; see `workers.engine.algorithms.hogwild_actor.Method`."""

    epsilon = None

    def __init__(self, tools: Tools) -> None:
        self._config: A3CConfig = tools.config
        self._network: GaussianActorCritic = tools.network
        self._rng = tools.rng
        self._policy = Unroll(self._network.policy_body, self._network.policy_lstm)
        self._value = Unroll(self._network.value_body, self._network.value_lstm)
        self._actions: list[NDArray[Any]] = []

    def begin(self) -> None:
        """Begin an update's decisions."""
        self._policy.begin()
        self._value.begin()
        self._actions.clear()

    @torch.inference_mode()
    def choose(self, observation: NDArray[Any]) -> Choice:
        """Draw from N(mu, sigma^2 I)."""
        state = torch.from_numpy(observation)
        mu_1D, variance_1 = self._network.policy_head(self._policy.step(state))
        value_1 = self._network.value_head(self._value.step(state))
        mu_D = mu_1D[0].numpy()
        noise_D = self._rng.standard_normal(len(mu_D), dtype=np.float32)
        action_D = mu_D + np.float32(variance_1.item() ** 0.5) * noise_D
        self._actions.append(action_D)
        return Choice(action_D, value_1.item(), mu_D)

    def learn(self, reward_T: list[float], after: NDArray[Any] | None) -> dict[str, float]:
        """Add the gradient of Algorithm S2, with this policy, to dtheta."""
        c = self._config
        R = torch.zeros(1)
        if after is not None:
            with torch.inference_mode():
                R = self._network.value_head(self._value.peek(torch.from_numpy(after)))
        T = len(reward_T)
        none_T1 = torch.zeros(T, 1, dtype=torch.bool)
        R_T1 = n_step_returns(torch.tensor(reward_T)[:, None], none_T1, R, c.gamma)
        policy_TF, value_TF = self._policy.features(), self._value.features()
        mu_TD, variance_T = self._network.policy_head(policy_TF)
        loss = gaussian_actor_critic_loss(
            mu_TD,
            variance_T,
            self._network.value_head(value_TF),
            torch.from_numpy(np.stack(self._actions)),
            R_T1[:, 0],
            beta=c.beta,
            value_coefficient=c.value_coefficient,
        )
        (loss.total * T).backward()  # type: ignore[no-untyped-call]
        assert policy_TF.grad is not None
        assert value_TF.grad is not None
        self._policy.backward(policy_TF.grad)
        self._value.backward(value_TF.grad)
        return {
            "loss/policy": loss.policy.item(),
            "loss/value": loss.value.item(),
            "loss/entropy": loss.entropy.item(),
            "policy/sigma": variance_T.detach().sqrt().mean().item(),
        }

    def begin_episode(self) -> None:
        """The LSTMs forget."""
        self._policy.reset_state()
        self._value.reset_state()

    def change(self, config: AsynchronousConfig) -> None:
        """Go on with other settings."""
        assert isinstance(config, A3CConfig)
        self._config = config

    def state(self) -> dict[str, Any]:
        """The LSTMs' states."""
        if self._policy.state is None or self._value.state is None:
            return {}
        return {"lstm": torch.stack([*self._policy.state, *self._value.state]).clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with the LSTMs' states."""
        if "lstm" in state:
            h, c, value_h, value_c = (part.clone() for part in state["lstm"].unbind(0))
            self._policy.state, self._value.state = (h, c), (value_h, value_c)
