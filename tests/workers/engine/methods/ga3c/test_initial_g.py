"""GA3C's RMSProp starts at the configured mean of squared gradients."""

import pytest
import torch

from backend.specs.algorithms.ga3c import Ga3cConfig
from workers.engine.methods.ga3c.model import Model
from workers.engine.nn.networks import actor_critic


@pytest.mark.parametrize("initial_g", [0.0, 1.0])
def test_first_step_is_equation_3_from_the_initial_value(initial_g: float) -> None:
    """Babaeizadeh et al. 2017, equation 3, with alpha 0.99 and epsilon 0.1."""
    config = Ga3cConfig.model_validate({"rmsprop_initial_g": initial_g})
    model = Model(actor_critic("mlp", (4,), 2), torch.device("cpu"), config)
    before = model.theta.clone()
    dtheta = torch.linspace(-1, 1, len(before))
    model.optimizer.step(dtheta, 0.0003)
    step = 0.0003 * dtheta / torch.sqrt(0.99 * initial_g + 0.01 * dtheta**2 + 0.1)
    torch.testing.assert_close(model.theta, before - step, rtol=0, atol=1e-7)
