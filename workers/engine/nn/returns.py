"""n-step returns and generalised advantages.

One recursion each for every method that bootstraps after up to n steps.
"""

import torch
from torch import Tensor


def n_step_returns(reward_TB: Tensor, terminated_TB: Tensor, bootstrap_B: Tensor, gamma: float) -> Tensor:
    """Returns of a rollout, each with all rewards that follow in it (forward view).

        R_T = bootstrap,   R_t = r_t + gamma R_{t+1},   with R_{t+1} taken as 0 after a terminal step.

    Mnih et al. 2016, Algorithm S2; Clemente et al. 2017, Algorithm 1, lines 12 to 15.

    Args:
        reward_TB: rewards of decisions t = 0 … T-1, clipped or not, (T, B).
        terminated_TB: whether decision t ended the episode, (T, B) bool.
        bootstrap_B: value of the state after decision T - 1, (B,).
        gamma: discount in [0, 1].

    Returns:
        (T, B), R for t = 0 … T-1.

    Raises:
        ValueError: the shapes do not match.
    """
    _check_shapes(reward_TB, terminated_TB, bootstrap_B)
    discount_TB = gamma * (~terminated_TB).to(reward_TB.dtype)
    R_TB = torch.empty_like(reward_TB)
    R_B = bootstrap_B
    for t in range(len(reward_TB) - 1, -1, -1):
        R_B = reward_TB[t] + discount_TB[t] * R_B
        R_TB[t] = R_B
    return R_TB


def generalised_advantages(
    reward_TB: Tensor,
    terminated_TB: Tensor,
    value_TB: Tensor,
    bootstrap_B: Tensor,
    gamma: float,
    lambda_: float,
) -> Tensor:
    """Generalised advantage estimates of a rollout.

        delta_t = r_t + gamma V(s_{t+1}) - V(s_t),   A_t = delta_t + gamma lambda A_{t+1},   A_T = 0,

    with V(s_{t+1}) and A_{t+1} taken as 0 after a terminal step. With lambda = 1 this is the n-step return
    less V(s_t). Schulman et al. 2016, equation 16; Schulman et al. 2017, equations 11 and 12.

    Args:
        reward_TB: as of `n_step_returns`.
        terminated_TB: as of `n_step_returns`.
        value_TB: V(s_t) for t = 0 … T-1, (T, B).
        bootstrap_B: V(s_T), (B,).
        gamma: discount in [0, 1].
        lambda_: weight of longer estimates, in [0, 1].

    Returns:
        (T, B), A for t = 0 … T-1.

    Raises:
        ValueError: the shapes do not match.
    """
    _check_shapes(reward_TB, terminated_TB, bootstrap_B)
    if value_TB.shape != reward_TB.shape:
        shapes = (tuple(reward_TB.shape), tuple(value_TB.shape))
        raise ValueError(f"rewards and values of shapes {shapes} do not match")
    discount_TB = gamma * (~terminated_TB).to(reward_TB.dtype)
    A_TB = torch.empty_like(reward_TB)
    A_B, next_value_B = torch.zeros_like(bootstrap_B), bootstrap_B
    for t in range(len(reward_TB) - 1, -1, -1):
        delta_B = reward_TB[t] + discount_TB[t] * next_value_B - value_TB[t]
        A_B = delta_B + discount_TB[t] * lambda_ * A_B
        A_TB[t], next_value_B = A_B, value_TB[t]
    return A_TB


def _check_shapes(reward_TB: Tensor, terminated_TB: Tensor, bootstrap_B: Tensor) -> None:
    if reward_TB.shape != terminated_TB.shape or reward_TB.shape[1:] != bootstrap_B.shape:
        shapes = (tuple(reward_TB.shape), tuple(terminated_TB.shape), tuple(bootstrap_B.shape))
        raise ValueError(f"rewards, terminated and bootstrap of shapes {shapes} do not match")
