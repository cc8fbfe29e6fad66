"""How it learns: PAAC's update from other returns.

Differences from the paper: those of PAAC, whose loss and optimizer it has, instead of a trust region.
"""

import torch

from a2c_gae.spec import A2cGaeConfig
from callboard_algorithms.engine import (
    ActorCritic,
    Env,
    PaacActorCritic,
    Policy,
    RolloutBatch,
    RolloutFactories,
    SampledPolicy,
    actor_critic,
    generalised_advantages,
    synchronous_method,
)


def network(config: A2cGaeConfig, env: Env) -> ActorCritic:
    """The network of a run."""
    return actor_critic(config.network, env.observation_shape, len(env.action_names))


def policy(network: ActorCritic, device: torch.device, seed: int) -> Policy:
    """Samples from pi."""
    return SampledPolicy(network, device, seed)


class AdvantageActorCritic(PaacActorCritic):
    """PAAC with R = A + V, where A is the generalised estimate of the advantage."""

    def returns(self, batch: RolloutBatch) -> torch.Tensor:
        """The targets of V, (T, B), whose distance from V is the advantage."""
        gamma, lambda_ = self._config.gamma, self._config.gae_lambda
        ends = (batch.reward_TB, batch.ended_TB, batch.value_TB, batch.bootstrap_B)
        return generalised_advantages(*ends, gamma, lambda_) + batch.value_TB


METHOD = synchronous_method(RolloutFactories(A2cGaeConfig, network, policy, AdvantageActorCritic))
