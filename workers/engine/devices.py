"""Where the network lives."""

import torch


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
