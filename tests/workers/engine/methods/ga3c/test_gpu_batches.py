"""GA3C's batches of fixed sizes: the same gradient and update as the trainer's own."""

import math

import numpy as np
import pytest
import torch

from backend.specs.algorithms.ga3c import Ga3cConfig
from tests.support.devices import DEVICES
from workers.engine.methods.ga3c.gpu_batches import SIZES, GpuBatches
from workers.engine.nn.losses import ga3c_loss
from workers.engine.nn.networks import actor_critic
from workers.engine.nn.optimizers import FlatParameters, RMSProp, clip_grad_norm_

SHAPE = (84, 84, 4)


@pytest.mark.parametrize("device", DEVICES)
def test_filled_up_batches_give_the_updates_of_their_experiences(device: str) -> None:
    """Three updates of each size: as they stand, recorded, replayed; beside the plain ones on the CPU."""
    config = Ga3cConfig(network="nips", max_grad_norm=0.7, beta=0.02)
    network, plain = actor_critic("nips", SHAPE, 4), actor_critic("nips", SHAPE, 4)
    plain.load_state_dict(network.state_dict())
    flat, plain_flat = FlatParameters(network.to(device)), FlatParameters(plain)
    optimizer, plain_optimizer = (
        RMSProp(theta, decay=0.99, eps=0.1) for theta in (flat.theta, plain_flat.theta)
    )

    def update(dtheta: torch.Tensor, max_norm: float, rate: torch.Tensor) -> torch.Tensor:
        norm = clip_grad_norm_(dtheta, max_norm)
        optimizer.step(dtheta, rate)
        return norm

    batches = GpuBatches(network, flat.dtheta, update, SHAPE, np.dtype(np.uint8))
    rng = np.random.default_rng(1)
    for k, n in enumerate((5, 3, 8, 20, 32, 9)):
        observation_N = rng.integers(0, 256, (n, *SHAPE), np.uint8)
        action_N = rng.integers(0, 4, n, np.int32)
        R_N = rng.normal(size=n).astype(np.float32)
        before = flat.theta.cpu().clone()
        batches.compute_gradient(observation_N, action_N, R_N, config)
        losses = batches.update(config, 0.001 * (k + 1))
        logits_NA, value_N = plain(torch.from_numpy(observation_N))
        loss = ga3c_loss(
            logits_NA,
            value_N,
            torch.from_numpy(action_N).long(),
            torch.from_numpy(R_N),
            beta=config.beta,
            value_coefficient=config.value_coefficient,
            log_eps=config.log_eps,
        )
        plain_flat.dtheta.zero_()
        loss.total.backward()  # type: ignore[no-untyped-call]
        norm = clip_grad_norm_(plain_flat.dtheta, 0.7)
        plain_optimizer.step(plain_flat.dtheta, 0.001 * (k + 1))
        assert losses == pytest.approx(
            (loss.policy.item(), loss.value.item(), loss.entropy.item(), norm.item()), rel=1e-4
        )
        torch.testing.assert_close(flat.theta.cpu(), plain_flat.theta, rtol=0, atol=1e-6)
        assert not torch.equal(flat.theta.cpu(), before)


def test_a_changed_config_is_used_at_once() -> None:
    config = Ga3cConfig(network="nips", max_grad_norm=0.0)
    flat = FlatParameters(network := actor_critic("nips", SHAPE, 4))
    limits = []

    def update(dtheta: torch.Tensor, max_norm: float, rate: torch.Tensor) -> torch.Tensor:
        limits.append(max_norm)
        return dtheta.square().sum().sqrt()

    batches = GpuBatches(network, flat.dtheta, update, SHAPE, np.dtype(np.uint8))
    batch = np.ones((5, *SHAPE), np.uint8), np.zeros(5, np.int32), np.ones(5, np.float32)
    norms = []
    for changed in (config, config, config.model_copy(update={"beta": 1.0, "max_grad_norm": 3.0})):
        batches.compute_gradient(*batch, changed)
        norms.append(batches.update(changed, 0.1).grad_norm)
    assert limits == [math.inf, math.inf, 3.0]
    assert norms[0] == norms[1] != norms[2]


def test_sizes_hold_every_batch_of_predictions() -> None:
    assert list(SIZES) == sorted(SIZES)
