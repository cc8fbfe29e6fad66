"""A network as one module from observations to what its agent acts by, of plain PyTorch operations alone.

An exporter can trace it: our own kernels, and layers with a backward pass by hand, are replaced by what they
compute. Memory comes in and goes out as tensors.
"""

from copy import deepcopy
from typing import ClassVar

import torch
from torch import Tensor, nn

from workers.engine.nn.centre import Centre, centred_step_by_step
from workers.engine.nn.linear import Linear
from workers.engine.nn.networks import (
    ActionValues,
    ActorCritic,
    DiagonalActorCritic,
    GaussianActorCritic,
    Lstm,
    features_of,
)


class Inference(nn.Module):
    """A network between named tensors: the observation and the memory, and the outputs and the next memory.

    An episode begins with a memory of zeros, (N, cells) each.
    """

    outputs: ClassVar[tuple[str, ...]]
    """Names of its outputs. The first one is what a greedy agent acts by: the action of the highest logit or
    Q, or mu itself."""

    def __init__(self, memory: dict[str, int]) -> None:
        super().__init__()
        self.memory = memory
        """Name of each tensor of the memory -> its cells."""


class _Discrete(Inference):
    outputs = ("logits", "value")

    def __init__(self, network: ActorCritic) -> None:
        cells = 0 if network.lstm is None else network.lstm.cells
        super().__init__({"h": cells, "c": cells} if cells else {})
        self._network = network

    def forward(self, observation: Tensor, *memory: Tensor) -> tuple[Tensor, ...]:
        """Logits (N, A), V (N,), h and c."""
        features = features_of(self._network.body, observation)
        x, state = _remember(self._network.lstm, features, memory)
        return (*self._network.heads(x), *state)


class _Gaussian(Inference):
    outputs = ("mu", "sigma", "value")

    def __init__(self, network: GaussianActorCritic) -> None:
        cells = 0 if network.policy_lstm is None else network.policy_lstm.cells
        names = ("policy_h", "policy_c", "value_h", "value_c") if cells else ()
        super().__init__(dict.fromkeys(names, cells))
        self._network = network

    def forward(self, observation: Tensor, *memory: Tensor) -> tuple[Tensor, ...]:
        """mu (N, D), sigma (N, D), V (N,), and the memories of policy and value."""  # noqa: D403
        network = self._network
        of_policy = features_of(network.policy_body, observation)
        of_value = features_of(network.value_body, observation)
        of_policy, policy_state = _remember(network.policy_lstm, of_policy, memory[:2])
        of_value, value_state = _remember(network.value_lstm, of_value, memory[2:])
        mu, variance = network.policy_head(of_policy)
        sigma = variance.sqrt()[:, None].expand_as(mu)
        return (mu, sigma, network.value_head(of_value), *policy_state, *value_state)


class _Diagonal(Inference):
    outputs = ("mu", "sigma", "value")

    def __init__(self, network: DiagonalActorCritic) -> None:
        super().__init__({})
        self._network = network

    def forward(self, observation: Tensor) -> tuple[Tensor, ...]:
        """mu (N, D), sigma (N, D) and V (N,)."""  # noqa: D403
        mu, value = self._network(observation)
        return mu, self._network.log_sigma.exp().expand_as(mu), value


class _Values(Inference):
    outputs = ("q",)

    def __init__(self, network: ActionValues) -> None:
        super().__init__({})
        self._network = network

    def forward(self, observation: Tensor) -> tuple[Tensor, ...]:
        """Q (N, A)."""
        return (self._network(observation),)


_FORMS: tuple[tuple[type[nn.Module], type[Inference]], ...] = (
    (ActorCritic, _Discrete),
    (GaussianActorCritic, _Gaussian),
    (DiagonalActorCritic, _Diagonal),
    (ActionValues, _Values),
)


def inference_of(network: nn.Module) -> Inference:
    """A copy of a network for inference, on the CPU.

    Raises:
        ValueError: it is none of the networks of `workers.engine.nn.networks`.
    """
    for kind, form in _FORMS:
        if isinstance(network, kind):
            return form(_plain(deepcopy(network))).eval()  # type: ignore[arg-type]
    known = ", ".join(kind.__name__ for kind, _ in _FORMS)
    raise ValueError(f"the network is a {type(network).__name__}; only {known} can be exported so")


def _remember(lstm: Lstm | None, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """What the heads take, and the next state; without an LSTM its input, and none."""
    if lstm is None:
        return x, ()
    h, c = state
    after: tuple[Tensor, Tensor] = lstm(x, (h, c))
    return after[0], after


def _plain(module: nn.Module) -> nn.Module:
    """The module with every layer of ours that is computed by kernels replaced by PyTorch's operations."""
    for name, layer in module.named_children():
        if isinstance(layer, Linear):
            plain = nn.Linear(layer.in_features, layer.out_features, layer.bias is not None)
            plain.load_state_dict(layer.state_dict())
            setattr(module, name, plain)
        elif isinstance(layer, Centre):
            layer.__class__ = _PlainCentre
        else:
            _plain(layer)
    return module


class _PlainCentre(Centre):
    """Centres pixels by PyTorch's operations."""

    def centred(self, pixels_BHWC: Tensor, *, out: Tensor | None = None) -> Tensor:
        return torch.clone(centred_step_by_step(pixels_BHWC, self.mean, self.deviation))
