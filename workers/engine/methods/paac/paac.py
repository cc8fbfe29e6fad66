"""PAAC: parallel advantage actor-critic (Clemente, Castejón and Chandra 2017, Algorithm 1).

In the framework of `workers.engine.methods.paac.learner`, theta is updated with

    d theta   = 1/(n_e t_max) sum_i sum_t (R_t,i - v_t,i) grad log pi(a_t,i | s_t,i) + beta grad H(pi(s_t,i))
    d theta_v = 1/(n_e t_max) sum_i sum_t grad (R_t,i - V(s_t,i))^2

where R is accumulated backwards from V of the state after the rollout, or from 0 at a terminal one.

Differences from the paper, apart from the framework's:
- Policy and value share one network (the paper's section 5.1), so one gradient holds both terms; its value
  term has the weight `value_coefficient` (1: as printed).
- With `standardise`, off by default, each state has a mean of 0 and a deviation of 1.
"""

import torch
from torch import Tensor

from backend.specs.algorithms.paac import PaacConfig
from workers.engine.envs.base import Env
from workers.engine.methods.base import Policy
from workers.engine.methods.paac.learner import synchronous_method
from workers.engine.methods.paac.method import BatchDecision, RolloutFactories, SinglePass
from workers.engine.nn.losses import actor_critic_loss
from workers.engine.nn.networks import ActorCritic, actor_critic
from workers.engine.nn.policies import SampledPolicy, sample


def network(config: PaacConfig, env: Env) -> ActorCritic:
    """The network of a run."""
    n_actions = len(env.action_names)
    return actor_critic(
        config.network,
        env.observation_shape,
        n_actions,
        standardise=config.standardise,
        centre=config.centre,
    )


def policy(network: ActorCritic, device: torch.device, seed: int) -> Policy:
    """Samples from pi, with randomness of its own."""
    return SampledPolicy(network, device, seed)


class PaacActorCritic(SinglePass[PaacConfig, ActorCritic]):
    """See `RolloutAlgorithm`. One policy for all environments: it is on-policy."""

    def begin(self, frames: int, progress: float) -> None:
        """Nothing depends on either."""

    def choose(self, features_BF: Tensor, group: slice) -> BatchDecision:
        """Sample from pi."""
        logits_BA, v_B = self._network.heads(features_BF)
        a_B, pi_BA = sample(logits_BA, self._generator)
        return BatchDecision(a_B, v_B, pi_BA)

    def value(self, observation_B: Tensor) -> Tensor:
        """V(s; theta_v)."""
        v_B: Tensor = self._network.heads(self._unroll.peek(observation_B))[1]
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
        metrics = {"loss/policy": loss.policy, "loss/value": loss.value, "loss/entropy": loss.entropy}
        return loss.total, metrics


METHOD = synchronous_method(RolloutFactories(PaacConfig, network, policy, PaacActorCritic))
