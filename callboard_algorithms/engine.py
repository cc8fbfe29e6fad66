"""What the method of an algorithm is built from: rollouts, learners, networks, losses, returns, optimizers.

Needs `callboard[worker]`. Engines import it, web hosts do not.
"""

from workers.engine.envs.base import Box, Env
from workers.engine.methods.base import Learner, Method, Policy, StepResult
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.methods.paac.learner import PaacLearner, synchronous_method
from workers.engine.methods.paac.method import (
    BatchDecision,
    RolloutAlgorithm,
    RolloutBatch,
    RolloutContext,
    RolloutFactories,
    RolloutOptimizer,
    SinglePass,
)
from workers.engine.methods.paac.paac import PaacActorCritic
from workers.engine.methods.paac.ppo import ProximalPolicy
from workers.engine.nn.losses import actor_critic_loss, ppo_loss, td_loss
from workers.engine.nn.networks import (
    ActionValues,
    ActorCritic,
    DiagonalActorCritic,
    action_values,
    actor_critic,
    diagonal_actor_critic,
)
from workers.engine.nn.optimizers import Adam, RMSProp
from workers.engine.nn.policies import SampledPolicy, sample
from workers.engine.nn.returns import generalised_advantages, n_step_returns
from workers.engine.nn.schedules import learning_rate

__all__ = [
    "ActionValues",
    "ActorCritic",
    "Adam",
    "BatchDecision",
    "Box",
    "DiagonalActorCritic",
    "DqnLearner",
    "Env",
    "Learner",
    "Method",
    "PaacActorCritic",
    "PaacLearner",
    "Policy",
    "ProximalPolicy",
    "RMSProp",
    "RolloutAlgorithm",
    "RolloutBatch",
    "RolloutContext",
    "RolloutFactories",
    "RolloutOptimizer",
    "SampledPolicy",
    "SinglePass",
    "StepResult",
    "action_values",
    "actor_critic",
    "actor_critic_loss",
    "diagonal_actor_critic",
    "generalised_advantages",
    "learning_rate",
    "n_step_returns",
    "ppo_loss",
    "sample",
    "synchronous_method",
    "td_loss",
]
