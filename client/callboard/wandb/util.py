"""W&B's module of this name, as far as scripts use it."""

from __future__ import annotations

from typing import Any

from callboard.spool import new_ulid
from callboard.wandb.media import stub


def generate_id(length: int = 8) -> str:
    """A random id of a run."""
    return new_ulid()[-length:].lower()


def __getattr__(name: str) -> Any:
    """A further function, which does nothing and says so when it is called."""
    return stub(f"util.{name}")
