"""Faults of a machine's disk: full, over quota, unreadable, read-only. They are never a run's fault.

An engine that meets one ends without a final event, which it could hardly write, and with an exit status that
states which one it was.
"""

import errno
import os
import re

ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS})
"""Errors of a machine's disk. EFBIG is the limit of a file's size that `ulimit -f` sets. EROFS is a disk that
the kernel has mounted again as read-only, usually after errors."""

UNREADABLE_CHECKPOINT_STATUS = 63
"""Exit status of an engine that cannot read the checkpoint to resume from. It has no final event either: the
file was intact when the engine was started."""

_FIRST_EXIT_STATUS = 64
_IN_TEXT = re.compile(r"\[Errno (\d+)\]")


def errno_of(error: BaseException) -> int | None:
    """The errno of the machine's fault that an exception is or was caused by; None if there is none.

    An error of a child process has its traceback as text.
    """
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, OSError):
            numbers = [cause.errno]
        else:
            numbers = [int(number) for number in _IN_TEXT.findall(str(cause))]
        for number in numbers:
            if number in ERRNOS:
                return number
        cause = cause.__cause__ or cause.__context__
    return None


def exit_status(number: int) -> int:
    """The exit status of an engine that a fault of the machine ended."""
    return _FIRST_EXIT_STATUS + number


def errno_of_exit_status(status: int | None) -> int | None:
    """The errno of the fault that ended an engine with this exit status; None if none did."""
    number = None if status is None else status - _FIRST_EXIT_STATUS
    return number if number in ERRNOS else None


def describe(number: int) -> str:
    """Words for users, such as "No space left on device"."""
    return os.strerror(number)
