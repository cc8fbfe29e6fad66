"""Text on its way into the database."""


def storable(text: str) -> str:
    """`text` without null bytes, which PostgreSQL cannot store."""
    return text.replace("\0", "\ufffd")
