"""n-step Q-learning in PAAC's framework (Clemente et al. 2017, section 3; Mnih et al. 2016, Algorithm S1).

In the framework of `workers.engine.methods.paac.learner`, theta is updated with the mean gradient of
(R_t,i - Q(s_t,i, a_t,i; theta))^2 over n_e environments and t_max decisions, where R is accumulated from
max_a Q(s, a; theta_minus) of the state s after the rollout, or from 0 at a terminal one. theta_minus <- theta
whenever the run's frames pass a multiple of `target_update_frames`.

"The policy may be sampled differently for each environment" (section 3): each has its own epsilon, annealed
from 1 to 0.1, 0.01 or 0.5 (defaults) over `exploration_anneal_frames`.

Differences from the paper, apart from the framework's:
- The paper has no such method, and only states that there can be one; the rest is that of Mnih et al. 2016.
- There, each actor repeatedly draws one of the three epsilons with probabilities 0.4, 0.3 and 0.3; here
  these fractions of the environments keep one each.
"""

from copy import deepcopy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.paac_q import PaacQConfig
from workers.engine.envs.base import Env
from workers.engine.methods.asynchronous.q import EPSILON_PROBABILITIES, policy, target_frames
from workers.engine.methods.paac.learner import synchronous_method
from workers.engine.methods.paac.method import (
    BatchDecision,
    RolloutContext,
    RolloutFactories,
    SinglePass,
    Slice,
)
from workers.engine.nn.losses import td_loss
from workers.engine.nn.networks import ActionValues, action_values
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.schedules import annealed


def network(config: PaacQConfig, env: Env) -> ActionValues:
    """The network of a run."""
    n_actions = len(env.action_names)
    return action_values(config.network, env.observation_shape, n_actions, centre=config.centre)


def epsilons(config: PaacQConfig, environments: Slice, frames: int) -> NDArray[np.float64]:
    """Epsilon of each of these environments (B,) after this many frames of the run."""
    ends = (config.exploration_eps, config.exploration_eps_low, config.exploration_eps_high)
    now = np.array([annealed(1.0, end, frames, config.exploration_anneal_frames) for end in ends])
    place_B = (np.arange(*environments) + 0.5) / config.n_e
    epsilon_B: NDArray[np.float64] = now[np.searchsorted(np.cumsum(EPSILON_PROBABILITIES), place_B)]
    return epsilon_B


class PaacNStepQ(SinglePass[PaacQConfig, ActionValues]):
    """See `RolloutAlgorithm`."""

    def __init__(self, context: RolloutContext[PaacQConfig, ActionValues]) -> None:
        super().__init__(context)
        self._environments = context.environments
        self._target_network: ActionValues = deepcopy(context.network)
        FlatParameters(self._target_network, theta=context.theta_minus)
        first, last = context.environments
        self._epsilon_B = torch.zeros(last - first, dtype=torch.float64, device=context.generator.device)

    def begin(self, frames: int, progress: float) -> NDArray[np.float64]:
        """Anneal epsilon, which is constant within a rollout."""
        epsilon_B = epsilons(self._config, self._environments, frames)
        self._epsilon_B.copy_(torch.from_numpy(epsilon_B))
        return epsilon_B

    def choose(self, features_BF: Tensor, group: slice) -> BatchDecision:
        """Epsilon-greedy by Q(s, .; theta)."""
        q_BA: Tensor = self._network.q(features_BF)
        B, A = q_BA.shape
        best = q_BA.max(-1)
        any_B = torch.randint(A, (B,), generator=self._generator, device=q_BA.device)
        random_B = torch.rand(B, generator=self._generator, device=q_BA.device) < self._epsilon_B[group]
        return BatchDecision(torch.where(random_B, any_B, best.indices), best.values, q_BA)

    def value(self, observation_B: Tensor) -> Tensor:
        """max_a Q(s, a; theta_minus)."""
        return self._target_network(observation_B).max(-1).values  # type: ignore[no-any-return]

    def advantages(self, reward_TB: Tensor, ended_TB: Tensor, value_TB: Tensor, bootstrap_B: Tensor) -> None:
        """There is no policy that they would weight."""

    def loss(self, features_NF: Tensor, action_N: Tensor, R_N: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Squared differences of Q from the returns."""
        q_NA = self._network.q(features_NF)
        loss = td_loss(q_NA, action_N, R_N)
        return loss, {"loss/td": loss, "value/max_q": q_NA.max(-1).values.mean()}


METHOD = synchronous_method(RolloutFactories(PaacQConfig, network, policy, PaacNStepQ, target_frames))
