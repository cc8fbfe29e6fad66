"""Where the network lives, and how states come there."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


class NoSuchDeviceError(ValueError):
    """The asked-for device is not on this host."""


def prepare_torch() -> None:
    """Settings of a process that trains or evaluates; call it first.

    One thread: the processes are the parallelism, and spinning threads would fight them. No denormals: they
    slow a CPU down manyfold.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def resolve_device(device: str) -> torch.device:
    """`auto` takes a GPU where there is one.

    Raises:
        NoSuchDeviceError: `cuda` was asked for and there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise NoSuchDeviceError("device: cuda was asked for, but this host has no usable GPU")
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


def describe(device: torch.device) -> str:
    """Such as `cpu` or `cuda:0 (NVIDIA H200)`."""
    if device.type != "cuda":
        return str(device)
    index = torch.cuda.current_device() if device.index is None else device.index
    return f"cuda:{index} ({torch.cuda.get_device_name(index)})"


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """States as they lie in memory, pixels as bytes: the network scales them on its device.

    To a GPU they go through pinned memory, while the CPU goes on; torch keeps that memory for the next states
    and knows when it is free. On a CPU the answer is the array itself, not a copy.
    """
    states = torch.from_numpy(array)
    return states.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else states
