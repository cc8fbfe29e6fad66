"""W&B's exceptions, of which Callboard raises `UsageError` before training."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Base class, as in W&B."""

    def __init__(self, message: str = "", *details: Any, **more: Any) -> None:
        """Hold the message; what else W&B's exceptions hold is not needed."""
        super().__init__(message or more.get("msg", ""))


class UsageError(Error):
    """A call that Callboard cannot follow, before training."""


class CommError(Error):
    """An error of the connection; never raised here."""


class AuthenticationError(CommError):
    """An error of the account; never raised here."""


class UnsupportedError(UsageError):
    """Never raised here."""


class WandbAttachFailedError(Error):
    """Never raised here."""
