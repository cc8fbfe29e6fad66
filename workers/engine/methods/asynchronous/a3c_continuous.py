"""A3C for continuous actions (Mnih et al. 2016, supplement, section 9).

The policy is a spherical normal distribution: mu is linear in the last layer, and one sigma^2 for all
dimensions is the softplus of a linear output. Policy and value networks share no layers: each has one layer
of 200 ReLUs for a state vector, or the convolutions of `network` (two in nips) for pixels, and then, with
`recurrent`, 128 LSTM cells.
With t_max = 0 each episode is one update, R starts at 0 and nothing is bootstrapped, unless the
environment crashed. `recurrent`, t_max = 0, shared RMSProp and a learning rate annealed to 0 are the defaults
for continuous actions.

Differences from the paper:
- Those of `workers.engine.methods.asynchronous.a3c`.
- The presets for two cores train a feed-forward agent by shared Adam at a constant rate; `mujoco` also
  updates every 50 agent steps and bootstraps.
- Pixels are four stacked frames, and rewards are not clipped; the supplement specifies neither.
- Each convolution is followed by a non-linearity, a ReLU or, in `compact`, an ELU; the supplement's by none.
- The value term's weight is `value_coefficient` though the value has its own network.
- The environment clips actions to its bounds, while log pi is of the action as it was drawn.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.a3c import A3CConfig
from workers.engine.methods.asynchronous.actor import ActorContext, Decision
from workers.engine.nn.autograd import create_unroll
from workers.engine.nn.losses import gaussian_actor_critic_loss
from workers.engine.nn.networks import GaussianActorCritic
from workers.engine.nn.returns import n_step_returns

LSTM_CELLS = 128


class ContinuousActorCritic:
    """See `ActorAlgorithm`."""

    epsilon = None

    def __init__(self, context: ActorContext[A3CConfig, GaussianActorCritic]) -> None:
        self._config = context.config
        self._network = context.network
        self._rng = context.rng
        self._policy = create_unroll(self._network.policy_body, self._network.policy_lstm)
        self._value = create_unroll(self._network.value_body, self._network.value_lstm)
        self._actions: list[NDArray[Any]] = []

    def begin_update(self) -> None:
        """Begin an update's decisions."""
        self._policy.begin()
        self._value.begin()
        self._actions.clear()

    @torch.inference_mode()
    def choose(self, observation: NDArray[Any]) -> Decision:
        """Draw from N(mu, sigma^2 I)."""
        state = torch.from_numpy(observation)
        mu_1D, variance_1 = self._network.policy_head(self._policy.step(state))
        value_1 = self._network.value_head(self._value.step(state))
        mu_D = mu_1D[0].numpy()
        noise_D = self._rng.standard_normal(len(mu_D), dtype=np.float32)
        action_D = mu_D + np.float32(variance_1.item() ** 0.5) * noise_D
        self._actions.append(action_D)
        return Decision(action_D, value_1.item(), mu_D)

    def drop_last(self) -> None:
        """Drop the last decision, in which the environment crashed."""
        self._policy.drop_last()
        self._value.drop_last()
        self._actions.pop()

    def learn(self, reward_T: list[float], next_observation: NDArray[Any] | None) -> dict[str, float]:
        """Add the gradient of Algorithm S2, with this policy, to dtheta."""
        c = self._config
        R = torch.zeros(1)
        if next_observation is not None:
            with torch.inference_mode():
                R = self._network.value_head(self._value.peek(torch.from_numpy(next_observation)))
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
        """Reset the LSTMs' states."""
        self._policy.reset_state()
        self._value.reset_state()

    def change(self, config: A3CConfig) -> None:
        """Continue with this config."""
        self._config = config

    def state(self) -> dict[str, Any]:
        """The LSTMs' states."""
        if self._policy.state is None or self._value.state is None:
            return {}
        return {"lstm": torch.stack([*self._policy.state, *self._value.state]).clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with the LSTMs' states."""
        if "lstm" in state:
            h, c, value_h, value_c = (part.clone() for part in state["lstm"].unbind(0))
            self._policy.state, self._value.state = (h, c), (value_h, value_c)
