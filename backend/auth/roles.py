"""Roles of users. A module of its own: the command line imports it without SQLAlchemy."""

from enum import StrEnum

EXTERNAL_RUNS = "external_runs"
"""The scope of a token that may only create external runs, and write those."""


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
