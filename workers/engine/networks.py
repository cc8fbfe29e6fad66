"""Networks with a policy and a value head on shared layers.

Weights begin orthogonal (Saxe et al. 2014) with biases 0: gain sqrt(2) in the body, so that what is seen does
not fade from layer to layer, 1 for the value, and 0.01 for the policy, which so begins undecided. The papers
print no initialisation; their authors' codes drew uniformly within ±1/sqrt(fan-in), Torch7's default, under
which a few pixels of ball reach the heads a thousand times weaker than the background.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn


class ActorCritic(nn.Module):
    """pi(.|s; theta) by softmax over `logits` and V(s; theta_v), sharing all layers but the last."""

    def __init__(self, body: nn.Module, features: int, n_actions: int) -> None:
        super().__init__()
        self.body = body
        self.logits = nn.Linear(features, n_actions)
        self.value = nn.Linear(features, 1)
        for layer in self.body.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                _orthogonal(layer, gain=2**0.5)
        _orthogonal(self.logits, gain=0.01)
        _orthogonal(self.value, gain=1.0)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Policy logits (B, A) and values (B,) of observations (B, H, W, C) uint8 or (B, D) float32."""
        if observation.dtype == torch.uint8:
            # Channels last in memory, as the convolutions like it: the view costs nothing.
            observation = observation.permute(0, 3, 1, 2).to(torch.float32).mul_(1 / 255)
        features = self.body(observation)
        return self.logits(features), self.value(features)[:, 0]


def _orthogonal(layer: nn.Conv2d | nn.Linear, *, gain: float) -> None:
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)


def _nips(channels: int) -> tuple[nn.Module, int]:
    """Mnih et al. 2013: two convolutions and 256 units."""
    layers = OrderedDict(
        conv1=nn.Conv2d(channels, 16, 8, stride=4),
        relu1=nn.ReLU(),
        conv2=nn.Conv2d(16, 32, 4, stride=2),
        relu2=nn.ReLU(),
        flatten=nn.Flatten(),
        linear=nn.Linear(32 * 9 * 9, 256),
        relu3=nn.ReLU(),
    )
    return nn.Sequential(layers), 256


def _nature(channels: int) -> tuple[nn.Module, int]:
    """Mnih et al. 2015: three convolutions and 512 units."""
    layers = OrderedDict(
        conv1=nn.Conv2d(channels, 32, 8, stride=4),
        relu1=nn.ReLU(),
        conv2=nn.Conv2d(32, 64, 4, stride=2),
        relu2=nn.ReLU(),
        conv3=nn.Conv2d(64, 64, 3, stride=1),
        relu3=nn.ReLU(),
        flatten=nn.Flatten(),
        linear=nn.Linear(64 * 7 * 7, 512),
        relu4=nn.ReLU(),
    )
    return nn.Sequential(layers), 512


def _mlp(inputs: int) -> tuple[nn.Module, int]:
    """For vector observations: two layers of 128 units."""
    layers = OrderedDict(
        linear1=nn.Linear(inputs, 128), tanh1=nn.Tanh(), linear2=nn.Linear(128, 128), tanh2=nn.Tanh()
    )
    return nn.Sequential(layers), 128


_BODIES = {"nips": _nips, "nature": _nature, "mlp": _mlp}


def actor_critic(network: str, observation_shape: tuple[int, ...], n_actions: int) -> ActorCritic:
    """Build a network.

    Args:
        network: `nips` and `nature` for (84, 84, C) pixels, `mlp` for (D,) vectors.
        observation_shape: without the batch.
        n_actions: A.

    Raises:
        KeyError: no such network.
    """
    body, features = _BODIES[network](observation_shape[-1])
    return ActorCritic(body, features, n_actions)
