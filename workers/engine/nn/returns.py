"""n-step returns.

One recursion for every method that bootstraps after up to n steps.
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
    if reward_TB.shape != terminated_TB.shape or reward_TB.shape[1:] != bootstrap_B.shape:
        shapes = (tuple(reward_TB.shape), tuple(terminated_TB.shape), tuple(bootstrap_B.shape))
        raise ValueError(f"rewards, terminated and bootstrap of shapes {shapes} do not match")
    discount_TB = gamma * (~terminated_TB).to(reward_TB.dtype)
    R_TB = torch.empty_like(reward_TB)
    R_B = bootstrap_B
    for t in range(len(reward_TB) - 1, -1, -1):
        R_B = reward_TB[t] + discount_TB[t] * R_B
        R_TB[t] = R_B
    return R_TB
