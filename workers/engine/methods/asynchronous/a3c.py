"""A3C: asynchronous advantage actor-critic (Mnih et al. 2016, Algorithm S2).

Each actor-learner copies theta' <- theta, acts in its own environment for up to t_max decisions or to a
terminal state. With R = 0 at a terminal state, V(s_t; theta_v') at any other, it accumulates backwards:

    R       <- r_i + gamma R
    dtheta  += grad log pi(a_i | s_i; theta') (R - V(s_i; theta_v')) + beta grad H(pi(s_i; theta'))
    dtheta_v += grad (R - V(s_i; theta_v'))^2

The sums, not means, are applied to theta immediately and without locks.

For continuous actions see `workers.engine.methods.asynchronous.a3c_continuous`.

Differences from the paper:
- Actor-learners are processes, not threads: Python runs one thread at a time. theta and the optimizer's
  statistics are in memory that they share.
- Policy and value share one network (as in the paper's experiments), so one gradient holds both terms; its
  value term has the weight `value_coefficient` (Algorithm S2 has 1; an author names 0.5, our default).
- The gradient's norm is clipped (the paper does so in its 57-game tables) before the update.
- The paper draws the learning rate from LogUniform(1e-4, 1e-2) and prints no epsilon and no initial g of
  RMSProp: `learning_rate`, `rmsprop_eps` and `rmsprop_initial_g` are settings, listed in docs/constants.md.
- The network `large` is GA3C's (Babaeizadeh et al. 2017, section 5.1), which compares both methods by it.
- With `recurrent`, the LSTM's state continues from one update to the next and gradients stop there, as in
  the paper's agent; it is reset with each episode. A resumed run continues each actor's episode and state.
- A truncated episode (`max_frames` or a time limit) is not treated as terminated, except with `t_max` = 0:
  whole episodes end without a bootstrap (section 9 of the supplement, where actions are continuous).
- A decision in which the environment crashed is dropped; its state is bootstrapped from.
- Evaluations start with no-ops. The paper's 57-game tables start from states of a person's play.
- Observations differ as `workers.engine.envs.atari` describes, initial weights as
  `workers.engine.nn.networks` does; shared Adam, and `standardise`, off by default, are not the paper's.
- With `centre`, off by default, observations are centred by the mean image of random play before training
  (`workers.engine.methods.random_play`). Its decisions are counted as frames, not as agent steps.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.a3c import A3CConfig
from workers.engine.envs.base import Box, Env
from workers.engine.methods.asynchronous import a3c_continuous
from workers.engine.methods.asynchronous.actor import ActorAlgorithm, ActorContext, Decision
from workers.engine.methods.asynchronous.learner import asynchronous_method
from workers.engine.methods.base import AlgorithmFactories, Policy
from workers.engine.nn.autograd import Heads, create_unroll
from workers.engine.nn.losses import actor_critic_descent
from workers.engine.nn.networks import (
    ActorCritic,
    GaussianActorCritic,
    actor_critic,
    gaussian_actor_critic,
)
from workers.engine.nn.policies import GaussianPolicy, RecurrentPolicy, SampledPolicy

LSTM_CELLS = 256


def network(config: A3CConfig, env: Env) -> ActorCritic | GaussianActorCritic:
    """The network of a run."""
    c = config
    continuous = isinstance(env.action_space, Box)
    cells = a3c_continuous.LSTM_CELLS if continuous else LSTM_CELLS
    options: dict[str, Any] = {
        "lstm_cells": cells if c.recurrent else 0,
        "standardise": c.standardise,
        "centre": c.centre,
        "first_layer_stride": c.first_layer_stride,
    }
    if isinstance(env.action_space, Box):
        D = len(env.action_space.low)
        return gaussian_actor_critic(c.network, env.observation_shape, D, **options)
    return actor_critic(c.network, env.observation_shape, env.action_space.n, **options)


def policy(network: ActorCritic | GaussianActorCritic, device: torch.device, seed: int) -> Policy:
    """Samples from pi, with randomness of its own."""
    if isinstance(network, GaussianActorCritic):
        return GaussianPolicy(network, device, seed)
    if network.lstm is not None:
        return RecurrentPolicy(network, device, seed)
    return SampledPolicy(network, device, seed)


def method(context: ActorContext[A3CConfig, Any]) -> ActorAlgorithm[A3CConfig]:
    """The method for the environment's action space."""
    if isinstance(context.network, GaussianActorCritic):
        return a3c_continuous.ContinuousActorCritic(context)
    return AdvantageActorCritic(context)


class AdvantageActorCritic:
    """See `ActorAlgorithm`."""

    epsilon = None

    def __init__(self, context: ActorContext[A3CConfig, ActorCritic]) -> None:
        self._config = context.config
        self._network = context.network
        self._rng = context.rng
        self._unroll = create_unroll(self._network.body, self._network.lstm)
        self._heads = Heads(self._network)
        self._actions: list[int] = []

    def begin_update(self) -> None:
        """Begin an update's decisions."""
        self._unroll.begin()
        self._heads.begin()
        self._actions.clear()

    @torch.inference_mode()
    def choose(self, observation: NDArray[Any]) -> Decision:
        """Sample from pi(.|s; theta')."""
        pi_A, value = self._heads.step(self._unroll.step(torch.from_numpy(observation)))
        # The first action whose cumulated probability exceeds a uniform number; rounding may leave none.
        action = int(pi_A.cumsum().searchsorted(self._rng.random(), side="right"))
        action = min(action, len(pi_A) - 1)
        self._actions.append(action)
        return Decision(action, value, pi_A)

    def drop_last(self) -> None:
        """Drop the last decision, in which the environment crashed."""
        self._unroll.drop_last()
        self._heads.drop_last()
        self._actions.pop()

    @torch.inference_mode()
    def learn(self, reward_T: list[float], next_observation: NDArray[Any] | None) -> dict[str, float]:
        """Add the gradient of Algorithm S2 to dtheta."""
        c = self._config
        R = (
            0.0
            if next_observation is None
            else self._heads.value(self._unroll.peek(torch.from_numpy(next_observation)))
        )
        # A terminal state can only be the last, where R is 0.
        R_T = [R := reward + c.gamma * R for reward in reversed(reward_T)][::-1]
        descent = actor_critic_descent(
            *self._heads.outputs(),
            np.array(self._actions),
            np.array(R_T),
            beta=c.beta,
            value_coefficient=c.value_coefficient,
        )
        self._unroll.backward(
            self._heads.backward(self._unroll.features(), descent.d_logits_TA, descent.d_value_T)
        )
        return {
            "loss/policy": descent.policy,
            "loss/value": descent.value,
            "loss/entropy": descent.entropy,
        }

    def begin_episode(self) -> None:
        """Reset the LSTM's state."""
        self._unroll.reset_state()

    def change(self, config: A3CConfig) -> None:
        """Continue with this config."""
        self._config = config

    def state(self) -> dict[str, Any]:
        """The LSTM's state."""
        if self._unroll.state is None:
            return {}
        return {"lstm": torch.stack(self._unroll.state).clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with the LSTM's state."""
        if "lstm" in state:
            h, c = state["lstm"].unbind(0)
            self._unroll.state = (h.clone(), c.clone())


METHOD = asynchronous_method(AlgorithmFactories(A3CConfig, network, policy, method))
