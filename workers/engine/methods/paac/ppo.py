"""PPO: proximal policy optimisation with a clipped objective (Schulman et al. 2017, Algorithm 1).

In the framework of `workers.engine.methods.paac.learner`: after t_max decisions of n_e environments by
theta_old, theta is updated by Adam in K epochs over minibatches of them, each with the gradient of

    L = mean[ min(ratio A, clip(ratio, 1 - epsilon, 1 + epsilon) A) - c_1 (V(s) - V_target)^2 + c_2 H(pi) ]

where ratio = pi(a|s; theta) / pi(a|s; theta_old), A is the generalised advantage estimate (equation 11), and
V_target = A + V(s; theta_old). With a linear schedule the learning rate and epsilon fall to 0 together
(table 5).

Differences from the paper, apart from those of the framework that do not concern its optimizer:
- Advantages are normalised to mean 0 and deviation 1 in each minibatch (`normalise_advantages`), gradients
  are clipped to a norm of 0.5 and rewards to ±1 on Atari: the authors' code, baselines' ppo2, does so (to the
  sign of a reward), the paper prints none. Where V is exact, normalised advantages are noise of full size: at
  a constant learning rate they unlearn a solved CartPole, so that small environments do without.
- Common practice that the paper does not have, and this has not: clipping of the value around that of
  theta_old (ppo2), ending the epochs at a bound on the KL divergence, running normalisation of observations
  and rewards (ppo2 on MuJoCo), an epsilon that stays as it is while the rate is annealed, episodes that end
  with each life on Atari (a setting of the games here), and an annealed rate on MuJoCo. ppo2 has 4 epochs on
  Atari, and weighs the value loss by a quarter.
- Adam's epsilon is 1e-8, as its paper has it; the authors' code has 1e-5.
- Each rollout worker draws its own part of each minibatch from its own environments, and normalises the
  advantages of that part. Parts are equally large where the workers have equally many environments.
- A decision in which the environment crashed is replaced by another one of the same worker.
- For discrete actions, and for pixels, policy and value share one network (on Atari as in the paper). For
  continuous actions and vectors each has its own, with two layers of 64 tanh units, as in section 6.1.
- Initial weights are those of `workers.engine.nn.networks`; the paper prints none.
- MuJoCo's observations are normalised by constants (`workers.engine.envs.mujoco_scales`); actions are clipped
  to their bounds by the environment, while log pi is of the action as it was drawn.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.ppo import PpoConfig
from workers.engine.envs.base import Box, Env
from workers.engine.methods.base import Policy
from workers.engine.methods.paac.learner import synchronous_method
from workers.engine.methods.paac.method import BatchDecision, RolloutBatch, RolloutContext, RolloutFactories
from workers.engine.nn.devices import to_device
from workers.engine.nn.losses import ppo_loss
from workers.engine.nn.networks import ActorCritic, DiagonalActorCritic, actor_critic, diagonal_actor_critic
from workers.engine.nn.optimizers import Adam
from workers.engine.nn.policies import SampledPolicy, sample
from workers.engine.nn.returns import generalised_advantages
from workers.engine.nn.schedules import learning_rate


def network(config: PpoConfig, env: Env) -> ActorCritic | DiagonalActorCritic:
    """The network of a run."""
    c, space = config, env.action_space
    create = diagonal_actor_critic if isinstance(space, Box) else actor_critic
    n_outputs = len(env.action_names)
    return create(c.network, env.observation_shape, n_outputs, standardise=c.standardise, centre=c.centre)


def policy(network: Any, device: torch.device, seed: int) -> Policy:
    """Samples from pi, with randomness of its own."""
    kind = DiagonalPolicy if isinstance(network, DiagonalActorCritic) else SampledPolicy
    return kind(network, device, seed)


def optimizer(config: PpoConfig, theta: Tensor) -> Adam:
    """What updates theta."""
    return Adam(theta)


def updates(config: PpoConfig) -> int:
    """Minibatches of all epochs over a rollout."""
    return config.n_epochs * config.n_minibatches


def draw(
    network: ActorCritic | DiagonalActorCritic, outputs_BA: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Actions (B,) or (B, D) drawn from pi, and pi (B, A) or mu (B, D), given logits or mu."""
    if isinstance(network, ActorCritic):
        return sample(outputs_BA, generator)
    noise_BD = torch.randn(outputs_BA.shape, generator=generator, device=outputs_BA.device)
    return outputs_BA + network.log_sigma.exp() * noise_BD, outputs_BA


def log_pi_and_entropy(
    network: ActorCritic | DiagonalActorCritic, outputs_NA: Tensor, action_N: Tensor
) -> tuple[Tensor, Tensor]:
    """Log pi(a|s) and H(pi(.|s)), (N,) each, given logits or mu and the actions."""
    if isinstance(network, ActorCritic):
        log_pi_NA = outputs_NA.log_softmax(-1)
        return log_pi_NA.gather(-1, action_N[:, None])[:, 0], -(log_pi_NA.exp() * log_pi_NA).sum(-1)
    log_sigma_D = network.log_sigma
    z_ND = (action_N - outputs_NA) / log_sigma_D.exp()
    log_pi_N = -(0.5 * z_ND.square() + log_sigma_D + 0.5 * math.log(2 * math.pi)).sum(-1)
    entropy = (log_sigma_D + 0.5 * math.log(2 * math.pi * math.e)).sum()
    return log_pi_N, entropy.expand(len(action_N))


class DiagonalPolicy(SampledPolicy):
    """Samples from a `DiagonalActorCritic`."""

    @torch.no_grad()
    def act(
        self, observation_N: NDArray[np.generic], environment_N: NDArray[np.generic]
    ) -> tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.generic]]:
        """Sampled actions (N, D), V (N,) and mu (N, D)."""
        mu_ND, value_N = self._network(to_device(observation_N, self._device))
        action_ND, _ = draw(self._network, mu_ND, self._generator)
        return np.asarray(action_ND.cpu()), np.asarray(value_N.cpu()), np.asarray(mu_ND.cpu())


class ProximalPolicy:
    """See `RolloutAlgorithm`."""

    keeps_observations = True

    def __init__(self, context: RolloutContext[PpoConfig, ActorCritic | DiagonalActorCritic]) -> None:
        self._config = context.config
        self._network = context.network
        self._unroll = context.unroll
        self._generator = context.generator
        self._clip = torch.zeros((), device=context.generator.device)
        """epsilon of this rollout, in memory that a CUDA graph reads."""

    def begin(self, frames: int, progress: float) -> None:
        """Anneal epsilon as the learning rate."""
        c = self._config
        self._clip.fill_(learning_rate(c.clip, c.learning_rate_schedule, progress))

    def choose(self, features_BF: Tensor, group: slice) -> BatchDecision:
        """Sample from pi."""
        outputs_BA, v_B = self._network.heads(features_BF)
        a_B, policy_BA = draw(self._network, outputs_BA, self._generator)
        log_pi_B, _ = log_pi_and_entropy(self._network, outputs_BA, a_B)
        return BatchDecision(a_B, v_B, policy_BA, log_pi_B)

    def value(self, observation_B: Tensor) -> Tensor:
        """V(s; theta)."""
        v_B: Tensor = self._network.heads(self._unroll.peek(observation_B))[1]
        return v_B

    def advantages(
        self, reward_TB: Tensor, ended_TB: Tensor, value_TB: Tensor, bootstrap_B: Tensor
    ) -> Tensor:
        """Generalised advantages, before they are normalised."""
        c = self._config
        return generalised_advantages(reward_TB, ended_TB, value_TB, bootstrap_B, c.gamma, c.gae_lambda)

    def gradients(self, batch: RolloutBatch) -> Iterator[dict[str, Tensor]]:
        """The gradient of each minibatch of each epoch."""
        c = self._config
        advantage_TB = self.advantages(batch.reward_TB, batch.ended_TB, batch.value_TB, batch.bootstrap_B)
        target_N = (advantage_TB + batch.value_TB).flatten()
        advantage_N = advantage_TB.flatten()
        for _ in range(c.n_epochs):
            for index_M in torch.split(self._shuffle(batch), len(target_N) // c.n_minibatches):
                yield self._gradient(batch, index_M, advantage_N[index_M], target_N[index_M])

    def change(self, config: PpoConfig) -> None:
        """Continue with this config."""
        self._config = config

    def _shuffle(self, batch: RolloutBatch) -> Tensor:
        """Indices (N,) of decisions in random order; those to learn from also take the places of others."""
        N = len(batch.action_N)
        order_N = torch.rand(N, generator=self._generator, device=self._generator.device).argsort()
        if batch.kept_N is None:
            return order_N
        return batch.kept_N.repeat(math.ceil(N / len(batch.kept_N)))[:N][order_N]

    def _gradient(
        self, batch: RolloutBatch, index_M: Tensor, advantage_M: Tensor, target_M: Tensor
    ) -> dict[str, Tensor]:
        c = self._config
        assert batch.observation_N is not None
        assert batch.log_pi_N is not None
        if c.normalise_advantages:
            deviation = advantage_M.std(correction=0)
            advantage_M = (advantage_M - advantage_M.mean()) / (deviation + 1e-8)
        self._unroll.begin()
        self._unroll.step(batch.observation_N[index_M])
        features_MF = self._unroll.features()
        outputs_MA, value_M = self._network.heads(features_MF)
        log_pi_M, entropy_M = log_pi_and_entropy(self._network, outputs_MA, batch.action_N[index_M])
        loss = ppo_loss(
            log_pi_M,
            entropy_M,
            value_M,
            old_log_pi_N=batch.log_pi_N[index_M],
            advantage_N=advantage_M,
            target_N=target_M,
            clip=self._clip,
            beta=c.beta,
            value_coefficient=c.value_coefficient,
        )
        (loss.total * batch.share).backward()  # type: ignore[no-untyped-call]
        assert features_MF.grad is not None
        self._unroll.backward(features_MF.grad)
        return {
            "loss/policy": loss.policy,
            "loss/value": loss.value,
            "loss/entropy": loss.entropy,
            "ppo/kl": loss.kl,
            "ppo/clip_fraction": loss.clip_fraction,
        }


METHOD = synchronous_method(
    RolloutFactories(PpoConfig, network, policy, ProximalPolicy, optimizer=optimizer, updates=updates)
)
