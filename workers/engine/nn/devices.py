"""Devices: resolving the requested one, and moving observations to it."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor


class Acceleration(NamedTuple):
    """How a learner uses a GPU; every combination computes the same updates from the same decisions.

    `benchmarks.gpu` measures the alternatives. A learner on a CPU that is given an `Acceleration` computes as
    on a GPU, but without graphs: tests without a GPU use this.
    """

    graphs: bool = True
    """Launch the kernels of acting and of learning as CUDA graphs."""
    groups: int = 2
    """PAAC: parts of the environments that take turns, of which one steps while the actions of another are
    computed."""


class NoSuchDeviceError(ValueError):
    """The requested device is not available on this host."""


def prepare_torch() -> None:
    """Set up PyTorch in a process that trains or evaluates; call it first.

    One thread, because processes run in parallel and spinning threads would compete with them. Denormals are
    flushed to 0, because they slow a CPU down manyfold. fp32 is fp32 on a GPU too: PyTorch would compute
    convolutions there with the 10 bits of TF32.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.backends.cudnn.allow_tf32 = False


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


def acceleration_on(device: torch.device, requested: Acceleration | None) -> Acceleration | None:
    """How a learner uses its device: as requested, else the defaults on a GPU, and None on a CPU."""
    return Acceleration() if requested is None and device.type == "cuda" else requested


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


def pin(array: NDArray[Any]) -> Tensor:
    """A view of memory from which, and to which, a GPU copies without waiting for the CPU.

    Raises:
        RuntimeError: the driver does not pin this memory.
    """
    view = torch.from_numpy(array)
    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    status = runtime.cudaHostRegister(view.data_ptr(), view.nbytes, 0)
    if int(status) != 0:
        raise RuntimeError(f"{view.nbytes:,} bytes of memory could not be pinned for the GPU: {status}")
    return view


def unpin(view: Tensor) -> None:
    """End what `pin` began, before the memory is given back."""
    torch.cuda.cudart().cudaHostUnregister(view.data_ptr())  # type: ignore[no-untyped-call]


def host_buffer(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Memory of this computer for copies to and from a device: pinned if that is a GPU."""
    return torch.zeros(shape, dtype=dtype, pin_memory=device.type == "cuda")


def create_stream(device: torch.device) -> torch.cuda.Stream | None:
    """A stream of its own on a GPU; None on a CPU."""
    return torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]


@contextmanager
def on_stream(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """Launch on this stream, after all that was launched before; None: on a CPU."""
    if stream is not None:
        stream.wait_stream(torch.cuda.current_stream(stream.device))
    with nullcontext() if stream is None else torch.cuda.stream(stream):
        yield
