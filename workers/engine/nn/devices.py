"""Devices: resolving the requested one, and moving observations to it."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


class NoSuchDeviceError(ValueError):
    """The requested device is not available on this host."""


def prepare_torch() -> None:
    """Set up PyTorch in a process that trains or evaluates; call it first.

    One thread, because processes run in parallel and spinning threads would compete with them. Denormals are
    flushed to 0, because they slow a CPU down manyfold.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def resolve_device(device: str) -> torch.device:
    """The device to use; `auto` means a GPU if there is one.

    Raises:
        NoSuchDeviceError: `cuda` was requested and there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise NoSuchDeviceError(
            "device: cuda was requested, but this host has no usable GPU; use cpu or auto"
        )
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


def describe(device: torch.device) -> str:
    """A device's name, such as `cpu` or `cuda:0 (NVIDIA H200)`."""
    if device.type != "cuda":
        return str(device)
    index = torch.cuda.current_device() if device.index is None else device.index
    return f"cuda:{index} ({torch.cuda.get_device_name(index)})"


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Observations on `device` in their own dtype: the network scales pixels there.

    They are copied to a GPU through pinned memory without blocking; PyTorch reuses that memory once it is
    free. On a CPU the result shares the array's memory.
    """
    states = torch.from_numpy(array)
    return states.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else states
