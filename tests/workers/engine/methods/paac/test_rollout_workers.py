"""PAAC's environments shared among workers: one update, and the gradient of what was seen."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.workers.engine.training.training_runs import cartpole


@pytest.mark.service
def test_rollout_workers_compute_one_update_together() -> None:
    """Two processes' shares make the update that one process makes of the same decisions."""
    from workers.engine.methods.paac.learner import PaacLearner
    from workers.engine.methods.paac.paac import METHOD

    spec = cartpole({"agent_steps": 100}, n_w=2, learning_rate=0.01, max_grad_norm=1e6, rmsprop_eps=0.1)
    learner = PaacLearner(spec, METHOD.factories)
    try:
        theta = learner.flat.theta.clone()
        learner.advance(0.0, watched=False)
        _, _, shares = learner.memory.views()
        assert len(shares) == 2
        assert all(share.abs().sum() > 0 for share in shares)
        d = (shares[0] + shares[1]).double()
        expected = theta.double() - 0.01 * d / torch.sqrt(0.01 * d * d + 0.1)
        torch.testing.assert_close(learner.flat.theta.double(), expected, rtol=0, atol=1e-6)
    finally:
        learner.close()


def test_512_environments_give_one_update() -> None:
    from workers.engine.methods.registry import METHODS

    learner = METHODS["paac"].learner(cartpole({"agent_steps": 10_000}, n_e=512, t_max=2))
    try:
        made = learner.advance(0.0, watched=False)
        assert (made.agent_steps, made.updates) == (1_024, 1)
        begun = [k for share in learner.state()["shares"] for k in share["episodes_begun"]]
        assert len(begun) == 512
    finally:
        learner.close()


def test_rollout_gradient_uses_its_own_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept activations give the gradient that a fresh pass over the same observations gives."""
    from workers.engine.methods.paac import paac
    from workers.engine.methods.paac.learner import PaacLearner
    from workers.engine.methods.paac.rollout import RolloutWorker
    from workers.engine.nn.losses import ActorCriticLoss, actor_critic_loss

    batches: list[dict[str, Any]] = []

    def spy(
        logits: torch.Tensor, v: torch.Tensor, a: torch.Tensor, R: torch.Tensor, **k: Any
    ) -> ActorCriticLoss:
        batches.append({"a": a, "R": R, **k})
        return actor_critic_loss(logits, v, a, R, **k)

    monkeypatch.setattr(paac, "actor_critic_loss", spy)
    learner = PaacLearner(cartpole({"agent_steps": 100}, n_e=4, t_max=5), paac.METHOD.factories)
    share = learner.rollout_workers[0]
    assert isinstance(share, RolloutWorker)
    seen: list[NDArray[Any]] = []
    original = share.observation

    def observe() -> torch.Tensor:
        observation = original()
        seen.append(observation.numpy().copy())
        return observation

    monkeypatch.setattr(share, "observation", observe)
    before = learner.flat.theta.clone()
    share.finish()
    kept = learner.flat.dtheta.clone()
    assert torch.equal(before, learner.flat.theta)
    logits, v = learner.network(torch.from_numpy(np.concatenate(seen[:5])))
    learner.flat.dtheta.zero_()
    [batch] = batches
    loss = actor_critic_loss(
        logits, v, batch["a"], batch["R"], beta=batch["beta"], value_coefficient=batch["value_coefficient"]
    )
    loss.total.backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(kept, learner.flat.dtheta, rtol=1e-5, atol=1e-7)
    learner.close()
