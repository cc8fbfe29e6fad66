"""Checkpoints as REST shows them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from backend.pagination import Page
from backend.runs.schemas import Number


class CheckpointOut(BaseModel):
    """A complete file a run can go on from."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    run_id: str
    attempt: int
    recorded_at: datetime
    agent_steps: int
    frames: int
    updates: int
    episodes: int
    wall_time_s: Number
    file: str
    sha256: str
    size_bytes: int
    removed: bool
    """Thinned out: its file is gone."""
    superseded: bool


class CheckpointPage(Page[CheckpointOut]):
    """A page of checkpoints."""
