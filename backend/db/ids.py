"""Identifiers: ULIDs, which sort by creation."""

from ulid import ULID


def new_id() -> str:
    """A new ULID, 26 characters."""
    return str(ULID())
