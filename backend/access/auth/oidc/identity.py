"""The outcome of a sign-in by OpenID Connect: an identity, or why there is none.

The provider returns one and the service takes it; neither imports the other for that.
"""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Identity:
    """A verified identity: the pair of issuer and subject. Names and addresses are only claims."""

    issuer: str
    subject: str
    claims: dict[str, Any]


Code = Literal["denied", "expired", "failed", "name_taken", "no_role", "unavailable", "unknown", "wait"]
"""What the login page shows: the rest is for log and audit trail."""


class ProviderUnavailable(Exception):
    """The provider cannot be reached, or its answer is invalid."""


class Refused(Exception):
    """Sign-in was refused."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code
