"""PAAC and n-step Q in its framework learn CartPole, and these tests would know if they did not."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.learning import SOLVED, cartpole_score
from workers.engine.algorithms import paac, paac_q
from workers.engine.losses import ActorCriticLoss, actor_critic_loss, td_loss


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


@pytest.mark.learning
def test_learns_cartpole_and_not_with_the_sign_flipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = cartpole_score("paac", tmp_path / "learner", 400_000)
    # A policy that hardly moves from where it began: uniform.
    random = cartpole_score("paac", tmp_path / "random", 10_000, learning_rate=1e-12)
    monkeypatch.setattr(paac, "actor_critic_loss", flipped)
    wrong = cartpole_score("paac", tmp_path / "flipped", 100_000)
    with capsys.disabled():
        print(f"\nCartPole-v1: learner {learner:.1f}, random {random:.1f}, sign flipped {wrong:.1f}")  # noqa: T201
    assert learner >= SOLVED
    assert np.isclose(random, 22, atol=6)
    assert wrong < 30


@pytest.mark.learning
def test_q_learns_cartpole_and_not_with_the_sign_flipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Little exploration in the end, or the score is that of environments which act at random.
    explore = {"exploration_eps": 0.05, "exploration_eps_high": 0.1, "exploration_anneal_frames": 10_000}
    learner = cartpole_score("paac_q", tmp_path / "learner", 80_000, **explore)
    monkeypatch.setattr(paac_q, "td_loss", lambda *batch: -td_loss(*batch))
    wrong = cartpole_score("paac_q", tmp_path / "flipped", 15_000, **explore)
    with capsys.disabled():
        print(f"\npaac_q on CartPole-v1: learner {learner:.1f}, sign flipped {wrong:.1f}")  # noqa: T201
    assert learner >= SOLVED
    assert wrong < 50
