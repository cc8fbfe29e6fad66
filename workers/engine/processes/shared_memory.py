"""Memory that processes share, as NumPy arrays over one unnamed file. Needs no torch.

The file has no name, so nothing is left behind however the processes end. Blocks of
`multiprocessing.shared_memory` have names: they remain after a kill, or are removed while others use them.
"""

import mmap
import os
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np
from numpy.typing import NDArray

Fields = dict[str, tuple[tuple[int, ...], str]]
"""Name -> shape and dtype of each array, in order."""

_CACHE_LINE_BYTES = 64


class SharedArrays:
    """Arrays, each an attribute of its name, all zeros at first; what one process writes, all see.

    Subclasses declare the attributes. As an argument of a `Child` it is the same memory there. Pages that
    have never been written take no memory.
    """

    def __init__(self, fields: Fields, *, fd: int | None = None) -> None:
        """Create the memory, or attach to that of an open file.

        Args:
            fields: the arrays, alike in every process; each begins at a cache line.
            fd: the file; None creates it.
        """
        sizes = {
            name: -(-int(np.prod(shape)) * np.dtype(dtype).itemsize // _CACHE_LINE_BYTES) * _CACHE_LINE_BYTES
            for name, (shape, dtype) in fields.items()
        }
        self._fields = fields
        self._fd = os.memfd_create("callboard") if fd is None else fd
        if fd is None:
            os.ftruncate(self._fd, sum(sizes.values()))
        memory = mmap.mmap(self._fd, sum(sizes.values()))
        offset = 0
        for name, (shape, dtype) in fields.items():
            array: NDArray[Any] = np.ndarray(shape, dtype, memory, offset)
            setattr(self, name, array)
            offset += sizes[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """As `multiprocessing` passes it to a child it starts."""
        return _attach, (type(self), self._fields, DupFd(self._fd))

    def close(self) -> None:
        """Close the file; the arrays stay."""
        os.close(self._fd)


def _attach(kind: type[SharedArrays], fields: Fields, fd: Any) -> SharedArrays:
    arrays = kind.__new__(kind)
    SharedArrays.__init__(arrays, fields, fd=fd.detach())
    return arrays
