"""Losses whose gradients are the papers' updates."""

from typing import NamedTuple

from torch import Tensor


class ActorCriticLoss(NamedTuple):
    """Means over a batch; `total` is minimised."""

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
