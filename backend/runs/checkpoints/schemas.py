"""Response bodies of checkpoints."""

from datetime import datetime

from pydantic import ConfigDict, Field

from backend.platform.schemas import Id, Number, Page
from backend.specs.fields import Schema


class CheckpointOut(Schema):
    """A complete file that a run can resume from; of an external run, one that its script has saved."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the checkpoint."""
    run_id: Id
    """Id of the run that saved the checkpoint."""
    attempt: int
    """Number of the attempt that saved the checkpoint; 0 for the one that a fork starts from, and for an
    external run."""
    recorded_at: datetime
    """When the checkpoint was recorded in the database."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps of the run at the checkpoint."""
    frames: int = Field(examples=[4_000_000])
    """Emulator frames of the run at the checkpoint."""
    updates: int = Field(examples=[6_250])
    """Updates of the parameters at the checkpoint; 0 for an external run."""
    episodes: int = Field(examples=[812])
    """Training episodes that had ended at the checkpoint."""
    wall_time_s: Number = Field(examples=[294.5])
    """Training time of the run at the checkpoint, in seconds."""
    file: str = Field(examples=["a1-s000001000000.pt"])
    """Name of the file."""
    sha256: str
    """SHA-256 of the file, in hexadecimal."""
    size_bytes: int = Field(examples=[2_719_744])
    """Size of the file."""
    score: Number = Field(examples=[17.4])
    """The run's score at that time; for an external run, what its script has measured for the file."""
    removed: bool
    """Whether its file has been removed."""
    superseded: bool
    """Whether a later attempt resumed from an earlier checkpoint."""


class CheckpointPage(Page):
    """A page of checkpoints."""

    items: list[CheckpointOut]
    """Checkpoints of this page."""
