"""A3C: asynchronous advantage actor-critic (Mnih et al. 2016, Algorithm S2).

Each actor-learner copies theta' <- theta, acts in its own world for up to t_max decisions or to a terminal
state, and with R = 0 at a terminal state, V(s_t; theta_v') at any other, goes back over them:

    R       <- r_i + gamma R
    dtheta  += grad log pi(a_i | s_i; theta') (R - V(s_i; theta_v')) + beta grad H(pi(s_i; theta'))
    dtheta_v += grad (R - V(s_i; theta_v'))^2

The sums, not means, are applied to theta at once and without locks.

Continuous actions are told in `workers.engine.algorithms.a3c_continuous`.

Differences from the paper:
- Actor-learners are processes, where the paper has threads: Python runs one thread at a time. theta and the
  statistics of the optimizer lie in memory that they share.
- Policy and value share one network (as in the paper's experiments), so one gradient holds both terms; its
  value term has the weight `value_coefficient` (Algorithm S2 has 1; an author names 0.5, our default).
- The gradient's norm is clipped (the paper does so in its 57-game tables) before the update.
- With `recurrent`, the LSTM's state goes on from one update to the next and gradients stop there, as in the
  paper's agent; it begins at 0 with each episode. A resumed run goes on with each actor's episode and state.
- An episode that is cut off, by `max_frames` or a time limit, is not taken as terminal.
- The pictures differ as told in `workers.engine.envs.atari`, and the weights begin as told in
  `workers.engine.networks`; shared Adam, and `standardise`, off by default, are not the paper's.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.a3c import A3CConfig
from backend.specs.algorithms.asynchronous import AsynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms import a3c_continuous
from workers.engine.algorithms.hogwild_actor import Choice, Method, MethodMaker, Tools
from workers.engine.envs.base import Box, World
from workers.engine.heads import Heads
from workers.engine.learner import Policy
from workers.engine.losses import actor_critic_descent
from workers.engine.networks import (
    ActorCritic,
    GaussianActorCritic,
    actor_critic,
    gaussian_actor_critic,
)
from workers.engine.policies import GaussianPolicy, RecurrentPolicy, SampledPolicy
from workers.engine.unroll import Unroll

LSTM_CELLS = 256


def network(spec: RunSpec, world: World) -> ActorCritic | GaussianActorCritic:
    """The network of a run."""
    c = spec.config
    assert isinstance(c, A3CConfig)
    shape = world.observation_shape
    if isinstance(world.action_space, Box):
        D = len(world.action_space.low)
        cells = a3c_continuous.LSTM_CELLS if c.recurrent else 0
        return gaussian_actor_critic(c.network, shape, D, lstm_cells=cells, standardise=c.standardise)
    n_actions, cells = world.action_space.n, LSTM_CELLS if c.recurrent else 0
    return actor_critic(c.network, shape, n_actions, lstm_cells=cells, standardise=c.standardise)


def policy(
    spec: RunSpec, network: ActorCritic | GaussianActorCritic, device: torch.device, seed: int
) -> Policy:
    """Samples from pi, with randomness of its own."""
    if isinstance(network, GaussianActorCritic):
        return GaussianPolicy(network, device, seed)
    if network.lstm is not None:
        return RecurrentPolicy(network, device, seed)
    return SampledPolicy(network, device, seed)


def method(tools: Tools) -> Method:
    """The method for the world's kind of actions."""
    if isinstance(tools.network, GaussianActorCritic):
        return a3c_continuous.ContinuousActorCritic(tools)
    return AdvantageActorCritic(tools)


class AdvantageActorCritic:
    """The method in an actor; see `workers.engine.algorithms.hogwild_actor.Method`."""

    epsilon = None

    def __init__(self, tools: Tools) -> None:
        self._config: A3CConfig = tools.config
        self._network: ActorCritic = tools.network
        self._rng = tools.rng
        self._unroll = Unroll(self._network.body, self._network.lstm)
        self._heads = Heads(self._network)
        self._actions: list[int] = []

    def begin(self) -> None:
        """Begin an update's decisions."""
        self._unroll.begin()
        self._heads.begin()
        self._actions.clear()

    @torch.inference_mode()
    def choose(self, observation: NDArray[Any]) -> Choice:
        """Sample from pi(.|s; theta')."""
        pi_A, value = self._heads.step(self._unroll.step(torch.from_numpy(observation)))
        # The first action whose cumulated probability exceeds a uniform number; rounding may leave none.
        action = int(pi_A.cumsum().searchsorted(self._rng.random(), side="right"))
        action = min(action, len(pi_A) - 1)
        self._actions.append(action)
        return Choice(action, value, pi_A)

    @torch.inference_mode()
    def learn(self, reward_T: list[float], after: NDArray[Any] | None) -> dict[str, float]:
        """Add the gradient of Algorithm S2 to dtheta."""
        c = self._config
        R = 0.0 if after is None else self._heads.value(self._unroll.peek(torch.from_numpy(after)))
        # The decisions end at a terminal state if at all: where R is 0 already.
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
        """The LSTM forgets."""
        self._unroll.reset_state()

    def change(self, config: AsynchronousConfig) -> None:
        """Go on with other settings."""
        assert isinstance(config, A3CConfig)
        self._config = config

    def state(self) -> dict[str, Any]:
        """The LSTM's state."""
        if self._unroll.state is None:
            return {}
        return {"lstm": torch.stack(self._unroll.state).clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with the LSTM's state."""
        if "lstm" in state:
            h, c = state["lstm"].unbind(0)
            self._unroll.state = (h.clone(), c.clone())


A3C = MethodMaker(network, policy, method)
