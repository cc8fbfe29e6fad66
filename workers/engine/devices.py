"""Where the network lives."""

import torch


class NoSuchDeviceError(ValueError):
    """The asked-for device is not on this host."""


def resolve_device(device: str) -> torch.device:
    """`auto` takes a GPU where there is one.

    Raises:
        NoSuchDeviceError: `cuda` was asked for and there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise NoSuchDeviceError("device: cuda was asked for, but this host has no usable GPU")
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
