"""Ids in addresses."""

from typing import Annotated

from fastapi import Path

Ulid = Annotated[str, Path(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")]
"""The id of a run, an episode, a checkpoint or an evaluation."""
