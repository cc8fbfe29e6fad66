"""Named parameters, as checkpoints store them: a network's flat vectors as a tensor for each module path."""

from typing import Any

import torch
from torch import Tensor, nn

from workers.engine.nn.optimizers import logical_order, storage_order


def split_by_name(network: nn.Module, vector: Tensor) -> dict[str, Tensor]:
    """Copy a flat vector (P,) to one contiguous tensor for each parameter, by module path.

    The names, shapes and order are those of `network.named_parameters()`: the result of theta is what
    `network.load_state_dict` takes.
    """
    parts: dict[str, Tensor] = {}
    start = 0
    for name, parameter in network.named_parameters():
        end = start + parameter.numel()
        stored = vector[start:end].view(storage_order(parameter.detach()).shape)
        parts[name] = logical_order(stored).clone(memory_format=torch.contiguous_format)
        start = end
    return parts


def flatten(parts: dict[str, Tensor]) -> Tensor:
    """The flat vector (P,) of named tensors; the inverse of `split_by_name`."""
    return torch.cat([storage_order(part).reshape(-1) for part in parts.values()])


def with_names(state: Any, network: nn.Module) -> Any:
    """A state in which every flat vector of the network's P parameters is replaced by named tensors."""
    n_parameters = sum(parameter.numel() for parameter in network.parameters())

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: convert(inner) for key, inner in value.items()}
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.shape == (n_parameters,):
            return split_by_name(network, value)
        return value

    return convert(state)


def without_names(state: Any, names: list[str]) -> Any:
    """A state with a flat vector for every dictionary of tensors with these names; inverts `with_names`."""
    if not isinstance(state, dict):
        return state
    if names and list(state) == names:
        return flatten(state)
    return {key: without_names(value, names) for key, value in state.items()}
