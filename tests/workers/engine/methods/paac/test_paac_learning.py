"""PAAC and n-step Q in its framework learn CartPole, and do not with the sign of their loss flipped."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.learning import SOLVED, cartpole_score
from workers.engine.methods.paac import paac, paac_q
from workers.engine.nn.losses import ActorCriticLoss, actor_critic_loss, td_loss


def flipped(
    logits_NA: torch.Tensor,
    value_N: torch.Tensor,
    action_N: torch.Tensor,
    R_N: torch.Tensor,
    *,
    beta: float,
    value_coefficient: float,
) -> ActorCriticLoss:
    """The loss with the policy gradient's sign turned."""
    loss = actor_critic_loss(
        logits_NA, value_N, action_N, R_N, beta=beta, value_coefficient=value_coefficient
    )
    return loss._replace(total=loss.total - 2 * loss.policy)


# Little exploration in the end, or the score is that of environments which act at random.
EXPLORE = {"exploration_eps": 0.05, "exploration_eps_high": 0.1, "exploration_anneal_frames": 10_000}


@pytest.mark.learning
@pytest.mark.parametrize(
    ("algorithm", "agent_steps", "config"), [("paac", 400_000, {}), ("paac_q", 80_000, EXPLORE)]
)
def test_method_learns_cartpole(
    algorithm: str, agent_steps: int, config: dict[str, float], tmp_path: Path
) -> None:
    assert cartpole_score(algorithm, tmp_path, agent_steps, **config) >= SOLVED


@pytest.mark.learning
@pytest.mark.long
def test_paac_does_not_learn_with_the_loss_sign_flipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A policy that hardly moves from where it began: uniform.
    random = cartpole_score("paac", tmp_path / "random", 10_000, learning_rate=1e-12)
    monkeypatch.setattr(paac, "actor_critic_loss", flipped)
    wrong = cartpole_score("paac", tmp_path / "flipped", 100_000)
    assert np.isclose(random, 22, atol=6)
    assert wrong < 30


@pytest.mark.learning
@pytest.mark.long
def test_paac_q_does_not_learn_with_the_loss_sign_flipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paac_q, "td_loss", lambda *batch: -td_loss(*batch))
    assert cartpole_score("paac_q", tmp_path, 15_000, **EXPLORE) < 50
