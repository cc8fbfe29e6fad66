"""Networks: actor-critic on shared layers, Gaussian actor-critic on separate layers, and action values.

Differences from the papers:
- Weights are initialised orthogonally (Saxe et al. 2014), biases 0. The gain is sqrt(2) in the body, so that
  activations keep their scale from layer to layer, 1 for the value, and 0.01 for the policy, which is then
  almost uniform. The papers print no initialisation. Their authors' code drew uniformly within
  ±1/sqrt(fan-in), Torch7's default; then a few pixels of ball reach the heads a thousand times weaker than
  the background.
"""

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, softplus

from workers.engine.nn.centre import Centre, centre_of
from workers.engine.nn.linear import Linear

PAPERS_STRIDE = 4
"""Stride of the first convolution of the papers' networks."""


class Lstm(nn.Module):
    """LSTM cells with forget gates; input and state share one weight matrix, so one state is one product.

    [i, f, o, g] = [sigmoid, sigmoid, sigmoid, tanh](W [x, h] + b)
    c <- f c + i g,   h <- o tanh c
    """

    def __init__(self, inputs: int, cells: int) -> None:
        super().__init__()
        self.inputs, self.cells = inputs, cells
        self.weight = nn.Parameter(torch.empty(4 * cells, inputs + cells))
        self.bias = nn.Parameter(torch.zeros(4 * cells))
        for part in (self.weight[:, :inputs], self.weight[:, inputs:]):
            nn.init.orthogonal_(part)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """New h and c (B, H) of inputs x (B, I) and the h and c before."""
        h, c = state
        z = linear(torch.cat([x, h], 1), self.weight, self.bias)
        i, f, o = z[:, : 3 * self.cells].sigmoid().chunk(3, 1)
        c = f * c + i * z[:, 3 * self.cells :].tanh()
        return o * c.tanh(), c


class Standardise(nn.Module):
    """Standardises each state to a mean of 0 and a standard deviation of 1; a constant state becomes 0.

    x <- (x - mean) / sqrt(variance + 1e-6)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Standardised states of the same shape, (B, C, H, W)."""
        x_BHWC = x.permute(0, 2, 3, 1)  # the order in memory
        return layer_norm(x_BHWC, x_BHWC.shape[1:], eps=1e-6).permute(0, 3, 1, 2)


class Halve(nn.Module):
    """Averages 2×2 pixels; PyTorch's own pooling takes six times as long for so few channels."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H / 2, W / 2) of x (B, C, H, W)."""
        B, C, H, W = x.shape
        x_BHrWC = x.permute(0, 2, 3, 1).reshape(B, H // 2, 2, W * C)  # the order in memory
        x_BHWcC = (x_BHrWC[:, :, 0] + x_BHrWC[:, :, 1]).view(B, H // 2, W // 2, 2, C)
        return (x_BHWcC[:, :, :, 0] + x_BHWcC[:, :, :, 1]).mul_(0.25).permute(0, 3, 1, 2)


class ActorCritic(nn.Module):
    """pi(.|s; theta), the softmax of `logits`, and V(s; theta_v); they share all layers but the last."""

    def __init__(self, body: nn.Sequential, features: int, n_actions: int, *, lstm_cells: int = 0) -> None:
        super().__init__()
        self.body = body
        self.lstm = Lstm(features, lstm_cells) if lstm_cells else None
        features = lstm_cells or features
        self.logits = nn.Linear(features, n_actions)
        self.value = nn.Linear(features, 1)
        _orthogonal_body(body)
        _orthogonal(self.logits, gain=0.01)
        _orthogonal(self.value, gain=1.0)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Policy logits (B, A) and values (B,) of observations (B, H, W, C) uint8 or (B, D) float32."""
        return self.heads(features_of(self.body, observation))

    def heads(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Policy logits (B, A) and values (B,) of features: outputs of the body, or of the LSTM behind it."""
        return self.logits(features), self.value(features)[:, 0]


class ActionValues(nn.Module):
    """Q(s, a; theta): one linear output for each action (Mnih et al. 2016, supplement, section 8)."""

    def __init__(self, body: nn.Sequential, features: int, n_actions: int) -> None:
        super().__init__()
        self.body = body
        self.q = nn.Linear(features, n_actions)
        _orthogonal_body(body)
        _orthogonal(self.q, gain=1.0)

    def forward(self, observation: Tensor) -> Tensor:
        """Q (B, A) of observations (B, H, W, C) uint8 or (B, D) float32."""
        q_BA: Tensor = self.q(features_of(self.body, observation))
        return q_BA


class GaussianActorCritic(nn.Module):
    """A normal policy over D numbers, and a value without shared layers (Mnih et al. 2016, supplement, 9).

    mu(s) is linear. One variance sigma^2(s) for all D numbers is the softplus of a linear output.
    """

    def __init__(self, bodies: tuple[nn.Sequential, nn.Sequential], features: int, D: int, lstm_cells: int):
        super().__init__()
        self.policy_body, self.value_body = bodies
        self.policy_lstm = Lstm(features, lstm_cells) if lstm_cells else None
        self.value_lstm = Lstm(features, lstm_cells) if lstm_cells else None
        features = lstm_cells or features
        self.mu = nn.Linear(features, D)
        self.variance = nn.Linear(features, 1)
        self.value = nn.Linear(features, 1)
        for body in bodies:
            _orthogonal_body(body)
        for head, gain in ((self.mu, 0.01), (self.variance, 0.01), (self.value, 1.0)):
            _orthogonal(head, gain=gain)

    def policy_head(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """mu (B, D) and sigma^2 (B,)."""  # noqa: D403
        # The floor keeps log pi finite where the softplus underflows.
        return self.mu(features), softplus(self.variance(features))[:, 0] + 1e-6

    def value_head(self, features: Tensor) -> Tensor:
        """V (B,)."""
        value_B: Tensor = self.value(features)[:, 0]
        return value_B


class SeparateBodies(nn.Module):
    """Two bodies on one observation, whose features lie beside each other."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, 2 F) of observations (B, D)."""
        return torch.cat([self.first(x), self.second(x)], 1)


class DiagonalActorCritic(nn.Module):
    """A normal policy over D numbers with a sigma each, whatever the state, and a value.

    Schulman et al. 2017, section 6.1. sigma is 1 at first. With a body of `SeparateBodies`, mu is linear in
    the first one's features, and V in the second one's; else both are linear in the same features.
    """

    def __init__(self, body: nn.Sequential, features: int, D: int) -> None:
        """`features` is the number of the features of mu, and of those of V."""
        super().__init__()
        self.body = body
        self._n_features = features
        self.mu = nn.Linear(features, D)
        self.log_sigma = nn.Parameter(torch.zeros(D))
        self.value = nn.Linear(features, 1)
        _orthogonal_body(body)
        _orthogonal(self.mu, gain=0.01)
        _orthogonal(self.value, gain=1.0)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """mu (B, D) and values (B,) of observations (B, H, W, C) uint8 or (B, D) float32."""  # noqa: D403
        return self.heads(features_of(self.body, observation))

    def heads(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """mu (B, D) and values (B,) of the body's features."""  # noqa: D403
        n = self._n_features
        return self.mu(features[:, :n]), self.value(features[:, -n:])[:, 0]


def as_input(observation: Tensor, *, dtype: torch.dtype = torch.float32, out: Tensor | None = None) -> Tensor:
    """Pixels (B, H, W, C) uint8 as (B, C, H, W) `dtype` in 0 to 1, in `out` if given; vectors unchanged."""
    if observation.dtype != torch.uint8:
        return observation
    # Channels last in memory, the fastest layout for convolutions: the view costs nothing.
    pixels = observation.permute(0, 3, 1, 2)
    return (pixels.to(dtype) if out is None else out.copy_(pixels)).mul_(1 / 255)


def features_of(body: nn.Module, observation: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """What a body computes of observations (B, …); one that centres pixels takes them as bytes."""
    x = as_input(observation, dtype=dtype) if centre_of(body) is None else observation.permute(0, 3, 1, 2)
    features: Tensor = body(x)
    return features


def _orthogonal_body(body: nn.Module) -> None:
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            _orthogonal(layer, gain=2**0.5)


def _orthogonal(layer: nn.Conv2d | nn.Linear, *, gain: float) -> None:
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def _nips(channels: int) -> tuple[nn.Sequential, int]:
    """Mnih et al. 2013: two convolutional layers and 256 units."""
    layers = OrderedDict(
        conv1=nn.Conv2d(channels, 16, 8, stride=4),
        relu1=nn.ReLU(),
        conv2=nn.Conv2d(16, 32, 4, stride=2),
        relu2=nn.ReLU(),
        flatten=nn.Flatten(),
        linear=Linear(32 * 9 * 9, 256),
        relu3=nn.ReLU(),
    )
    return nn.Sequential(layers), 256


def _nature(channels: int) -> tuple[nn.Sequential, int]:
    """Mnih et al. 2015: three convolutional layers and 512 units."""
    layers = OrderedDict(
        conv1=nn.Conv2d(channels, 32, 8, stride=4),
        relu1=nn.ReLU(),
        conv2=nn.Conv2d(32, 64, 4, stride=2),
        relu2=nn.ReLU(),
        conv3=nn.Conv2d(64, 64, 3, stride=1),
        relu3=nn.ReLU(),
        flatten=nn.Flatten(),
        linear=Linear(64 * 7 * 7, 512),
        relu4=nn.ReLU(),
    )
    return nn.Sequential(layers), 512


def _large(channels: int, stride: int) -> tuple[nn.Sequential, int]:
    """GA3C's deeper networks (Babaeizadeh et al. 2017, section 5.1), larger with a smaller stride."""
    units = 1024 if stride == 1 else 256
    side = (84 - 8) // stride + 1
    for kernel in (4, 4):
        side = (side - kernel) // 2 + 1
    layers = OrderedDict(
        conv1=nn.Conv2d(channels, 32, 8, stride=stride),
        relu1=nn.ReLU(),
        conv2=nn.Conv2d(32, 32, 4, stride=2),
        relu2=nn.ReLU(),
        conv3=nn.Conv2d(32, 64, 4, stride=2),
        relu3=nn.ReLU(),
        flatten=nn.Flatten(),
        linear=Linear(64 * side * side, units),
        relu4=nn.ReLU(),
    )
    return nn.Sequential(layers), units


def _mlp(inputs: int) -> tuple[nn.Sequential, int]:
    """For vector observations: two layers of 128 units."""
    layers = OrderedDict(
        linear1=nn.Linear(inputs, 128), tanh1=nn.Tanh(), linear2=nn.Linear(128, 128), tanh2=nn.Tanh()
    )
    return nn.Sequential(layers), 128


def _compact(channels: int) -> tuple[nn.Sequential, int]:
    """Four small convolutional layers for 42×42 observations; 84×84 ones are halved by area averaging.

    The network of ikostrikov/pytorch-a3c (after OpenAI's universe-starter-agent), which learns quickly on a
    CPU with an LSTM behind it. Differences: the input has all stacked frames, not the newest alone, so it
    also learns without an LSTM; states are standardised by their own mean and deviation, not by running ones.
    As there, the environment's setting `crop` should be on, or score and walls make up most of that
    deviation.
    """
    layers: list[nn.Module] = [Standardise()]
    for k in range(4):
        layers += [nn.Conv2d(channels if k == 0 else 32, 32, 3, stride=2, padding=1), nn.ELU()]
    return nn.Sequential(*layers, nn.Flatten()), 32 * 3 * 3


BODIES: dict[str, Callable[[int], tuple[nn.Sequential, int]]] = {
    "nips": _nips,
    "nature": _nature,
    "compact": _compact,
    "mlp": _mlp,
}
"""Network -> its layers and the number of their outputs, given the channels or the vector's length."""


def _body(
    network: str,
    observation_shape: tuple[int, ...],
    *,
    standardise: bool = False,
    centre: bool = False,
    first_layer_stride: int = PAPERS_STRIDE,
) -> tuple[nn.Sequential, int]:
    channels = observation_shape[-1]
    body, features = _large(channels, first_layer_stride) if network == "large" else BODIES[network](channels)
    standardises = any(isinstance(layer, Standardise) for layer in body)
    if network == "compact" and observation_shape[0] == 84:
        body.insert(0, Halve())
    elif standardise and len(observation_shape) == 3 and not standardises:
        body = _with_first(body, standardise=Standardise())
    return (_centring(body, observation_shape) if centre else body), features


def _centring(body: nn.Sequential, observation_shape: tuple[int, ...]) -> nn.Sequential:
    """The body, which centres pixels instead of standardising them; vectors it takes as they are."""
    if len(observation_shape) != 3:
        return body
    kept = nn.Sequential(*(layer for layer in body if not isinstance(layer, Standardise)))
    kept = kept if len(kept) < len(body) else body  # with its layers' names
    return _with_first(kept, centre=Centre(observation_shape))


def _with_first(body: nn.Sequential, **first: nn.Module) -> nn.Sequential:
    """The body behind a first layer, which is given by its name."""
    return nn.Sequential(OrderedDict(**first, **dict(body.named_children())))


def actor_critic(
    network: str,
    observation_shape: tuple[int, ...],
    n_actions: int,
    *,
    lstm_cells: int = 0,
    standardise: bool = False,
    centre: bool = False,
    first_layer_stride: int = PAPERS_STRIDE,
) -> ActorCritic:
    """Build a network with a policy and a value.

    Args:
        network: `nips`, `nature` and `large` for (84, 84, C) pixels, `compact` for these and (42, 42, C),
            `mlp` for (D,) vectors.
        observation_shape: without the batch.
        n_actions: A.
        lstm_cells: the number of cells of an LSTM behind the last hidden layer; 0 for none.
        standardise: whether pixels are standardised, as `compact` always does; vectors are not.
        centre: whether pixels are centred by the mean image of random play, also in `compact`; vectors are
            not.
        first_layer_stride: stride of the first layer of `large`, 1 to 4.

    Raises:
        KeyError: no such network.
    """
    body, features = _body(
        network,
        observation_shape,
        standardise=standardise,
        centre=centre,
        first_layer_stride=first_layer_stride,
    )
    return ActorCritic(body, features, n_actions, lstm_cells=lstm_cells)


def action_values(
    network: str, observation_shape: tuple[int, ...], n_actions: int, *, centre: bool = False
) -> ActionValues:
    """Build a network of action values; arguments and errors as for `actor_critic`."""
    body, features = _body(network, observation_shape, centre=centre)
    return ActionValues(body, features, n_actions)


def diagonal_actor_critic(
    network: str,
    observation_shape: tuple[int, ...],
    D: int,
    *,
    standardise: bool = False,
    centre: bool = False,
) -> DiagonalActorCritic:
    """Build a network for continuous actions (Schulman et al. 2017, section 6.1).

    Args:
        network: the network for pixels, which mu and V share; for vectors each has two layers of 64 units.
        observation_shape: without the batch.
        D: numbers in an action.
        standardise, centre: as for `actor_critic`.
    """
    if len(observation_shape) == 1:
        bodies = [
            nn.Sequential(nn.Linear(observation_shape[0], 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
            for _ in range(2)
        ]
        return DiagonalActorCritic(nn.Sequential(SeparateBodies(*bodies)), 64, D)
    body, features = _body(network, observation_shape, standardise=standardise, centre=centre)
    return DiagonalActorCritic(body, features, D)


def gaussian_actor_critic(
    network: str,
    observation_shape: tuple[int, ...],
    D: int,
    *,
    lstm_cells: int = 0,
    standardise: bool = False,
    centre: bool = False,
    first_layer_stride: int = PAPERS_STRIDE,
) -> GaussianActorCritic:
    """Build a network for continuous actions (Mnih et al. 2016, supplement, section 9).

    Args:
        network: name of the network for pixels, up to `Flatten`; vectors have one layer of 200 ReLUs.
        observation_shape: without the batch.
        D: numbers in an action.
        lstm_cells: 128 in the paper; 0 for no LSTM.
        standardise, centre, first_layer_stride: as for `actor_critic`.
    """

    def body() -> tuple[nn.Sequential, int]:
        if len(observation_shape) == 1:
            return nn.Sequential(nn.Linear(observation_shape[-1], 200), nn.ReLU()), 200
        whole, _ = _body(
            network,
            observation_shape,
            standardise=standardise,
            centre=centre,
            first_layer_stride=first_layer_stride,
        )
        layers = list(whole)
        flat = next(k for k, layer in enumerate(layers) if isinstance(layer, nn.Flatten))
        convolutions = nn.Sequential(*layers[: flat + 1])
        features = features_of(convolutions, torch.zeros(1, *observation_shape, dtype=torch.uint8)).shape[1]
        return convolutions, features

    policy_body, features = body()
    value_body, _ = body()
    return GaussianActorCritic((policy_body, value_body), features, D, lstm_cells)
