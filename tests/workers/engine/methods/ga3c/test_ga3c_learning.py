"""GA3C learns CartPole, and does not with the sign of its loss flipped."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.learning import SOLVED, cartpole_score
from workers.engine.methods.ga3c import model as ga3c_model
from workers.engine.nn.losses import ActorCriticLoss, ga3c_loss

pytestmark = [pytest.mark.learning, pytest.mark.long, pytest.mark.timeout(3_600)]  # minutes alone


def flipped(
    logits_NA: torch.Tensor,
    value_N: torch.Tensor,
    action_N: torch.Tensor,
    R_N: torch.Tensor,
    *,
    beta: float,
    value_coefficient: float,
    log_eps: float,
) -> ActorCriticLoss:
    """The loss with the policy gradient's sign turned."""
    loss = ga3c_loss(
        logits_NA,
        value_N,
        action_N,
        R_N,
        beta=beta,
        value_coefficient=value_coefficient,
        log_eps=log_eps,
    )
    return loss._replace(total=loss.total - 2 * loss.policy)


def test_ga3c_learns_cartpole(tmp_path: Path) -> None:
    assert cartpole_score("ga3c", tmp_path, 600_000) >= SOLVED


def test_ga3c_does_not_learn_with_the_loss_sign_flipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A policy that hardly moves from where it began: uniform.
    random = cartpole_score("ga3c", tmp_path / "random", 10_000, learning_rate=1e-12)
    monkeypatch.setattr(ga3c_model, "ga3c_loss", flipped)
    wrong = cartpole_score("ga3c", tmp_path / "flipped", 60_000)
    assert np.isclose(random, 22, atol=6)
    assert wrong < 30
