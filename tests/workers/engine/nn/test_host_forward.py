"""Forward passes from this computer's memory to its memory."""

import numpy as np
import pytest
import torch

from tests.support.devices import DEVICES
from workers.engine.nn.host_forward import HostForward
from workers.engine.nn.networks import actor_critic


@pytest.mark.parametrize("device", DEVICES)
def test_host_forward_returns_the_networks_results_for_any_number_of_states(device: str) -> None:
    """The first call of a size runs as it stands, the second is recorded, the third replayed."""
    network = actor_critic("nips", (84, 84, 4), 3).to(device)
    forward = HostForward(network, (2, 5), (84, 84, 4), np.dtype(np.uint8), torch.device(device))
    rng = np.random.default_rng(0)
    for n in (1, 5, 2, 3, 2, 4, 1):
        with torch.no_grad():
            network.value.bias.add_(1.0)  # a replay must read the parameters anew
        state_B = rng.integers(0, 256, (n, 84, 84, 4), np.uint8)
        forward.observation_B[:n] = state_B
        logits_BA, value_B = forward(n)
        with torch.no_grad():
            expected = network(torch.from_numpy(state_B).to(device))
        torch.testing.assert_close(torch.from_numpy(logits_BA), expected[0].cpu(), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(torch.from_numpy(value_B), expected[1].cpu(), rtol=1e-4, atol=1e-5)
