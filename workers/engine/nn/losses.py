"""Losses whose gradients are the papers' updates."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import huber_loss


def td_loss(q_NA: Tensor, action_N: Tensor, y_N: Tensor) -> Tensor:
    """Mean squared difference of Q(s, a; theta) from its target y.

        mean[ (y - Q(s, a; theta))^2 ]

    Mnih et al. 2016, Algorithms 1 and S1.

    Args:
        q_NA: Q(s, .; theta), (N, A).
        action_N: actions taken, (N,) int64.
        y_N: targets, (N,), held constant.

    Returns:
        A scalar.
    """
    return (y_N.detach() - q_NA.gather(-1, action_N[:, None])[:, 0]).square().mean()


class DqnLoss(NamedTuple):
    """Sums over a minibatch."""

    total: Tensor
    """The minimised loss."""
    absolute: Tensor
    """|y - Q(s, a; theta)|."""


def dqn_loss(q_NA: Tensor, action_N: Tensor, y_N: Tensor) -> DqnLoss:
    """The loss whose gradient is DQN's, with the error clipped to ±1 and summed over a minibatch.

        delta = y - Q(s, a; theta),   dtheta = -sum[ clip(delta, -1, 1) grad Q(s, a; theta) ]

    Mnih et al. 2015, methods; Nair et al. 2015, equation 2. The minimum squared gradient of 0.01 in DQN's
    RMSProp presumes a sum.

    Args:
        q_NA: Q(s, .; theta), (N, A).
        action_N: actions taken, (N,) int64.
        y_N: targets, (N,), held constant.

    Returns:
        Scalars.
    """
    q_N = q_NA.gather(-1, action_N[:, None])[:, 0]
    total = huber_loss(q_N, y_N.detach(), reduction="sum", delta=1.0)
    return DqnLoss(total, (y_N - q_N).detach().abs().sum())


class ActorCriticLoss(NamedTuple):
    """Means or sums over a batch; `total` is minimised."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor


def actor_critic_loss(
    logits_NA: Tensor,
    value_N: Tensor,
    action_N: Tensor,
    R_N: Tensor,
    *,
    beta: float,
    value_coefficient: float,
) -> ActorCriticLoss:
    """Advantage actor-critic over a batch of N decisions.

        policy  = -mean[ log pi(a|s) (R - V(s)) ],   (R - V) held constant
        value   =  mean[ (R - V(s))^2 ]
        entropy =  mean[ -sum_a pi(a|s) log pi(a|s) ]
        total   =  policy + value_coefficient value - beta entropy

    Clemente et al. 2017, equations 10 and 11 (value_coefficient = 1).

    Args:
        logits_NA: unnormalised log-probabilities, (N, A).
        value_N: V(s; theta_v), (N,).
        action_N: actions taken, (N,) int64.
        R_N: returns, (N,), held constant.
        beta: weight of the entropy.
        value_coefficient: weight of the value loss.

    Returns:
        Scalars.
    """
    log_pi_NA = logits_NA.log_softmax(-1)
    log_pi_a_N = log_pi_NA.gather(-1, action_N[:, None])[:, 0]
    advantage_N = R_N.detach() - value_N
    policy = -(log_pi_a_N * advantage_N.detach()).mean()
    value = advantage_N.square().mean()
    entropy = -(log_pi_NA.exp() * log_pi_NA).sum(-1).mean()
    total = policy + value_coefficient * value - beta * entropy
    return ActorCriticLoss(total, policy, value, entropy)


class ActorCriticDescent(NamedTuple):
    """The gradient of a sum over decisions, and the means of its terms."""

    d_logits_TA: NDArray[Any]
    d_value_T: NDArray[Any]
    policy: float
    value: float
    entropy: float


def actor_critic_descent(
    logits_TA: NDArray[Any],
    value_T: NDArray[Any],
    action_T: NDArray[np.int64],
    R_T: NDArray[Any],
    *,
    beta: float,
    value_coefficient: float,
) -> ActorCriticDescent:
    """The gradient of T times `actor_critic_loss`, in closed form, for the few decisions of one actor.

    Read `actor_critic_loss` first; this computes the gradient of the same, faster.

        d / d logits_j = (pi_j - [j = a]) (R - V) + beta pi_j (log pi_j + H)
        d / d V        = -2 value_coefficient (R - V)

    Mnih et al. 2016, Algorithm S2.

    Args:
        logits_TA: unnormalised log-probabilities, (T, A).
        value_T: V(s; theta_v), (T,).
        action_T: actions taken, (T,).
        R_T: returns, (T,).
        beta: weight of the entropy.
        value_coefficient: weight of the value loss.
    """
    # Numba takes 44 MB: it is imported only in processes that need it.
    from workers.engine.nn import kernels

    assert len(logits_TA) == len(value_T) == len(action_T) == len(R_T)
    logits_TA, value_T, R_T = (array.astype(np.float64) for array in (logits_TA, value_T, R_T))
    return ActorCriticDescent(
        *kernels.actor_critic_descent(logits_TA, value_T, action_T, R_T, beta, value_coefficient)
    )


def ga3c_loss(
    logits_NA: Tensor,
    value_N: Tensor,
    action_N: Tensor,
    R_N: Tensor,
    *,
    beta: float,
    value_coefficient: float,
    log_eps: float,
    counts_N: Tensor | None = None,
) -> ActorCriticLoss:
    """Advantage actor-critic, summed over N experiences of an older policy.

        policy  = -sum[ log(pi(a|s) + log_eps) (R - V(s)) ],   (R - V) held constant
        value   =  sum[ (R - V(s))^2 ]
        entropy =  sum[ -sum_a (pi(a|s) + log_eps) log(pi(a|s) + log_eps) ]
        total   =  policy + value_coefficient value - beta entropy

    Babaeizadeh et al. 2017, equations 2 and 5; sums, as in section 5.3 (value_coefficient = 1).

    Args:
        logits_NA: unnormalised log-probabilities under the current theta, (N, A).
        value_N: V(s; theta), (N,).
        action_N: actions taken, (N,) int64.
        R_N: returns, (N,), held constant.
        beta: weight of the entropy.
        value_coefficient: weight of the value loss.
        log_eps: keeps the logarithm and its gradient finite where pi underflows.
        counts_N: 1 for an experience, 0 for what fills up a batch of a fixed size, (N,); None: all count.

    Returns:
        Scalars.
    """

    def total_of(term_N: Tensor) -> Tensor:
        return (term_N if counts_N is None else term_N * counts_N).sum()

    pi_NA = logits_NA.softmax(-1) + log_eps
    log_pi_NA = pi_NA.log()
    log_pi_a_N = log_pi_NA.gather(-1, action_N[:, None])[:, 0]
    advantage_N = R_N.detach() - value_N
    policy = -total_of(log_pi_a_N * advantage_N.detach())
    value = total_of(advantage_N.square())
    entropy = -total_of((pi_NA * log_pi_NA).sum(-1))
    total = policy + value_coefficient * value - beta * entropy
    return ActorCriticLoss(total, policy, value, entropy)


class PpoLoss(NamedTuple):
    """Means over a minibatch; `total` is minimised."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl: Tensor
    """Estimate of KL(pi_old, pi), from the actions that were taken."""
    clip_fraction: Tensor
    """Fraction of the decisions whose probability ratio is outside the clip."""


def ppo_loss(
    log_pi_N: Tensor,
    entropy_N: Tensor,
    value_N: Tensor,
    *,
    old_log_pi_N: Tensor,
    advantage_N: Tensor,
    target_N: Tensor,
    clip: Tensor,
    beta: float,
    value_coefficient: float,
) -> PpoLoss:
    """The clipped surrogate objective over a minibatch of N decisions, as a loss.

        ratio   =  pi(a|s) / pi_old(a|s)
        policy  = -mean[ min(ratio A, clip(ratio, 1 - epsilon, 1 + epsilon) A) ],   A held constant
        value   =  mean[ (V_target - V(s))^2 ]
        entropy =  mean[ H(pi(.|s)) ]
        total   =  policy + value_coefficient value - beta entropy

    Schulman et al. 2017, equations 7 and 9. kl is the mean of ratio - 1 - log ratio, which is never negative.

    Args:
        log_pi_N: log pi(a|s; theta) of the actions taken, (N,).
        entropy_N: H(pi(.|s; theta)), (N,).
        value_N: V(s; theta), (N,).
        old_log_pi_N: log pi(a|s) by the theta that acted, (N,).
        advantage_N: estimated advantages, (N,).
        target_N: targets of V, (N,).
        clip: epsilon, a scalar.
        beta: weight of the entropy.
        value_coefficient: weight of the value loss.

    Returns:
        Scalars.
    """
    log_ratio_N = log_pi_N - old_log_pi_N.detach()
    ratio_N = log_ratio_N.exp()
    A_N = advantage_N.detach()
    clipped_N = ratio_N.clamp(1 - clip, 1 + clip)
    policy = -torch.minimum(ratio_N * A_N, clipped_N * A_N).mean()
    value = (target_N.detach() - value_N).square().mean()
    entropy = entropy_N.mean()
    total = policy + value_coefficient * value - beta * entropy
    with torch.no_grad():
        kl = (ratio_N - 1 - log_ratio_N).mean()
        clip_fraction = ((ratio_N - 1).abs() > clip).to(ratio_N.dtype).mean()
    return PpoLoss(total, policy, value, entropy, kl, clip_fraction)


def gaussian_actor_critic_loss(
    mu_ND: Tensor,
    variance_N: Tensor,
    value_N: Tensor,
    action_ND: Tensor,
    R_N: Tensor,
    *,
    beta: float,
    value_coefficient: float,
) -> ActorCriticLoss:
    """As `actor_critic_loss`, for a spherical normal policy N(mu, sigma^2 I) over D numbers.

        log pi(a|s) = -|a - mu|^2 / (2 sigma^2) - D/2 log(2 pi sigma^2)
        entropy     =  mean[ 1/2 (log(2 pi sigma^2) + 1) ]

    Mnih et al. 2016, supplement, section 9, which prints the entropy of one of the D numbers.

    Args:
        mu_ND: means, (N, D).
        variance_N: sigma^2, (N,), above 0.
        value_N: V(s; theta_v), (N,).
        action_ND: sampled actions before clipping, (N, D).
        R_N: returns, (N,), held constant.
        beta: weight of the entropy.
        value_coefficient: weight of the value loss.

    Returns:
        Scalars.
    """
    D = mu_ND.shape[-1]
    log_2pi_variance_N = (2 * math.pi * variance_N).log()
    distance_N = (action_ND - mu_ND).square().sum(-1)
    log_pi_a_N = -distance_N / (2 * variance_N) - D / 2 * log_2pi_variance_N
    advantage_N = R_N.detach() - value_N
    policy = -(log_pi_a_N * advantage_N.detach()).mean()
    value = advantage_N.square().mean()
    entropy = (0.5 * (log_2pi_variance_N + 1)).mean()
    total = policy + value_coefficient * value - beta * entropy
    return ActorCriticLoss(total, policy, value, entropy)
