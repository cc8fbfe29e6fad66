"""Errors that the package raises.

CallboardError
├── NotConfigured  (ValueError)  no server or no token is known
├── Rejected       (ValueError)  the server refused a request: its status, its code, and the fields at fault
└── Unreachable                  the server cannot be reached, fails, or something else answers for it
    └── RequestTooLarge          something on the way accepts smaller requests only
"""

from __future__ import annotations


class CallboardError(Exception):
    """Root of the tree."""


class NotConfigured(CallboardError, ValueError):
    """No server or no token is known."""


class Rejected(CallboardError, ValueError):
    """The server refused a request.

    Attributes:
        status: HTTP status.
        code: what was wrong, for programs, such as `run_not_found`; None if the server names none.
        fields: dotted path of each invalid field -> what is wrong with it.
        expected: for a batch that came too early, the sequence number that the server expects; for a part of
            a file, the offset that it expects.
    """

    def __init__(
        self,
        status: int,
        message: str,
        fields: dict[str, str] | None = None,
        expected: int | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.fields = fields or {}
        self.expected = expected


class Unreachable(CallboardError):
    """The server cannot be reached, fails, or something else answers for it: nothing is known but "not now".

    Attributes:
        retry_after_s: how long the server asks to wait; None if it does not state it.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RequestTooLarge(Unreachable):
    """The server, or something before it, accepts smaller requests only."""
