"""Bodies of notes at steps of runs."""

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from backend.platform.schemas import Id, Page
from backend.specs.fields import STORABLE, Schema, Strict
from backend.specs.run_fields import MAX_STEP_NOTE

NoteText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_STEP_NOTE, pattern=STORABLE, strip_whitespace=True),
]


class StepNoteRequest(Strict):
    """The body of `POST /runs/{id}/step-notes`."""

    agent_steps: int = Field(ge=0, le=2**62, examples=[400_000])
    """The step that the note is about, at most the run's latest; iterations of a run that counts them."""
    text: NoteText = Field(examples=["Entropy falls from here on."])
    """The note, as plain text."""


class StepNoteChange(Strict):
    """The body of `PATCH /runs/{id}/step-notes/{note}`."""

    agent_steps: int | None = Field(default=None, ge=0, le=2**62)
    """Another step; null changes nothing."""
    text: NoteText | None = None
    """Another text; null changes nothing."""


class StepNoteOut(Schema):
    """A note at a step of a run."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the note."""
    run_id: Id
    """Id of the run."""
    agent_steps: int = Field(examples=[400_000])
    """The step that the note is about; iterations of a run that counts them."""
    text: str = Field(examples=["Entropy falls from here on."])
    """The note, as plain text."""
    created_at: datetime
    """When it was written."""
    created_by: str | None
    """Id of the user who wrote it; null if that user has been deleted."""


class StepNotePage(Page):
    """Every note of a run."""

    items: list[StepNoteOut]
    """The notes, in the order of training."""
