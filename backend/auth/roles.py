"""Who may do what: `viewer` < `operator` < `admin`.

Viewers read. Operators start, stop and change runs. Admins also manage hosts' service, users and tokens.
"""

from enum import StrEnum


class Role(StrEnum):
    """What a person may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, needed: "Role") -> bool:
        """Whether someone with this role may do what `needed` may."""
        order = list(Role)
        return order.index(self) >= order.index(needed)

    def at_most(self, other: "Role") -> "Role":
        """The lesser of the two."""
        return self if other.covers(self) else other
