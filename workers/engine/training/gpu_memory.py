"""What to report to a user whose run has run out of GPU memory."""

from collections.abc import Iterator
from contextlib import suppress

import torch

from backend.specs.run import RunSpec

GIB = 2**30

_TEXTS = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""Messages of libraries that allocate memory without torch's allocator."""


def out_of_memory_reason(error: BaseException, spec: RunSpec) -> str | None:
    """What happened and what to change, in one sentence; None if the error has another cause.

    Args:
        error: the error that ended the training.
        spec: the run's specification.
    """
    if not any(_is_out_of_memory(cause) for cause in _causes(error)):
        return None
    advice = spec.config.gpu_memory_advice() or ["use a GPU with more memory", "set device to cpu"]
    reason = "out of memory on the GPU"
    with suppress(RuntimeError, AssertionError):  # CUDA may be unusable after the error
        free, total = torch.cuda.mem_get_info()
        own = torch.cuda.memory_reserved()
        others = max(0, total - free - own)
        if others > own:
            advice = ["end other processes on this GPU", *advice]
        reason += (
            f" of {total / GIB:.1f} GiB, of which this run has {own / GIB:.1f}, other processes and CUDA "
            f"itself have {others / GIB:.1f}, and {free / GIB:.1f} are free"
        )
    return f"{reason}: {_either(advice)}"


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _TEXTS)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it: ending the recording of a CUDA graph raises an error of its own."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__


def _either(advice: list[str]) -> str:
    *first, last = advice
    return f"{', '.join(first)} or {last}" if first else last
