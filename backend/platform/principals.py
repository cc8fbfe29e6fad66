"""Who sends a request: users, their roles, and what authenticates them. Standard library only."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

EXTERNAL_RUNS = "external_runs"
"""The scope of a token that may only create external runs, and write those."""
RUN = "run"
"""The scope of a token that may only write the run whose command has it."""


class Role(StrEnum):
    """What a user may do: `viewer` < `operator` < `admin`.

    Viewers read. Operators also start, stop and change runs. Admins also manage users and tokens.
    """

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, needed: "Role") -> bool:
        """Whether this role includes the permissions of `needed`."""
        order = list(Role)
        return order.index(self) >= order.index(needed)

    def at_most(self, other: "Role") -> "Role":
        """The lower of the two roles."""
        return self if other.covers(self) else other


@dataclass(frozen=True)
class Credential:
    """The session or the token that authenticated a request."""

    kind: Literal["session", "token"]
    id: str
    root_id: str | None = field(default=None, compare=False)
    """Id of the first token in the chain that led to this token, perhaps itself; None for a session."""

    @property
    def payer_id(self) -> str:
        """Id of the credential whose quotas and turns to write count: a token shares those of `root_id`."""
        return self.root_id or self.id


@dataclass(frozen=True)
class Principal:
    """The authenticated user of a request."""

    id: str
    name: str
    role: Role
    credential: Credential
    only_external_runs: bool = False
    """Whether it may only create external runs, and write those."""
    only_own_run: bool = False
    """Whether it may create none, and write only the run of its command."""
