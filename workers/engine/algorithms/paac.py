"""PAAC: parallel advantage actor-critic (Clemente, Castejón and Chandra 2017, Algorithm 1).

In the framework of `workers.engine.algorithms.paac_master`, theta is updated with

    d theta   = 1/(n_e t_max) sum_i sum_t (R_t,i - v_t,i) grad log pi(a_t,i | s_t,i) + beta grad H(pi(s_t,i))
    d theta_v = 1/(n_e t_max) sum_i sum_t grad (R_t,i - V(s_t,i))^2

where R goes back from V of the state after the rollout, or from 0 at a terminal one.

Differences from the paper, beside the framework's:
- Policy and value share one network (the paper's section 5.1), so one gradient holds both terms; its value
  term has the weight `value_coefficient` (1: as printed).
- With `standardise`, off by default, each state has a mean of 0 and a deviation of 1.
"""

import torch
from torch import Tensor, nn

from backend.specs.algorithms.paac import PaacConfig
from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms.paac_method import Choice, MethodMaker, Tools
from workers.engine.envs.base import World
from workers.engine.learner import Policy
from workers.engine.losses import actor_critic_loss
from workers.engine.networks import ActorCritic, actor_critic
from workers.engine.policies import SampledPolicy, sample


def network(spec: RunSpec, world: World) -> ActorCritic:
    """The network of a run."""
    assert isinstance(spec.config, PaacConfig)
    c = spec.config
    return actor_critic(
        c.network, world.observation_shape, len(world.action_names), standardise=c.standardise
    )


def policy(spec: RunSpec, network: nn.Module, device: torch.device, seed: int) -> Policy:
    """Samples from pi, with randomness of its own."""
    assert isinstance(network, ActorCritic)
    return SampledPolicy(network, device, seed)


class AdvantageActorCritic:
    """See `workers.engine.algorithms.paac_method.Method`. The policy must be one for all: it is on-policy."""

    def __init__(self, tools: Tools) -> None:
        self._config: PaacConfig = tools.config
        self._network: ActorCritic = tools.network
        self._peek = tools.peek
        self._generator = tools.generator

    def begin(self, frames: int) -> None:
        """Nothing of this method is as old as the run."""

    def choose(self, features_BF: Tensor) -> Choice:
        """Sample from pi."""
        logits_BA, v_B = self._network.heads(features_BF)
        a_B, pi_BA = sample(logits_BA, self._generator)
        return Choice(a_B, v_B, pi_BA)

    def value(self, observation_B: Tensor) -> Tensor:
        """V(s; theta_v)."""
        v_B: Tensor = self._network.heads(self._peek(observation_B))[1]
        return v_B

    def loss(self, features_NF: Tensor, action_N: Tensor, R_N: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Lines 16 and 17 of Algorithm 1."""
        loss = actor_critic_loss(
            *self._network.heads(features_NF),
            action_N,
            R_N,
            beta=self._config.beta,
            value_coefficient=self._config.value_coefficient,
        )
        told = {"loss/policy": loss.policy, "loss/value": loss.value, "loss/entropy": loss.entropy}
        return loss.total, told

    def change(self, config: SynchronousConfig) -> None:
        """Go on with other settings."""
        assert isinstance(config, PaacConfig)
        self._config = config


PAAC = MethodMaker(network, policy, AdvantageActorCritic)
