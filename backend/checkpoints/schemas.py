"""Response bodies of checkpoints."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from backend.schemas import Number, Page


class CheckpointOut(BaseModel):
    """A complete file that a run can resume from; of an external run, one that its script has saved."""

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
    score: Number
    """The run's score at that time; for an external run, what its script has measured for the file."""
    removed: bool
    """Whether its file has been removed."""
    superseded: bool


class CheckpointPage(Page[CheckpointOut]):
    """A page of checkpoints."""
