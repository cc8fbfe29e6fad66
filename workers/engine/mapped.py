"""NumPy arrays over one file that processes map: what one writes, all see. Needs no torch."""

import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CACHE_LINE_BYTES = 64


def map_arrays(
    fd: int, fields: dict[str, tuple[tuple[int, ...], str]], *, create: bool
) -> dict[str, NDArray[Any]]:
    """Map a file as arrays that lie one behind the other, each from a cache line on.

    Args:
        fd: of the file; it may be closed afterwards.
        fields: name -> shape and dtype, in order, alike in every process.
        create: whether to give the file its size first; its bytes are then 0.
    """
    sizes = {
        name: -(-int(np.prod(shape)) * np.dtype(dtype).itemsize // _CACHE_LINE_BYTES) * _CACHE_LINE_BYTES
        for name, (shape, dtype) in fields.items()
    }
    if create:
        os.ftruncate(fd, sum(sizes.values()))
    memory = mmap.mmap(fd, sum(sizes.values()))
    arrays: dict[str, NDArray[Any]] = {}
    offset = 0
    for name, (shape, dtype) in fields.items():
        arrays[name] = np.ndarray(shape, dtype, memory, offset)
        offset += sizes[name]
    return arrays
