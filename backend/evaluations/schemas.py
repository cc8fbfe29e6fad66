"""Evaluations as REST shows them and takes them."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from backend.db import Evaluation, Job
from backend.pagination import Page
from backend.runs.schemas import Number
from backend.specs.fields import Strict
from backend.specs.run import MAX_SEED
from backend.text import Text


class EvaluationRequest(Strict):
    """The body of `POST /runs/{id}/evaluations`."""

    protocol: Text | None = Field(default=None, max_length=50, description="The world's own by default.")
    episodes: int = Field(default=30, ge=1, le=1_000)
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    checkpoint: Text | None = Field(
        default=None, max_length=26, description="Id of a checkpoint of this run; its newest by default."
    )


class EvaluationOut(BaseModel):
    """Scores of one checkpoint from fresh starts."""

    id: str
    run_id: str
    attempt: int | None
    requested_at: datetime
    protocol: str
    n_episodes: int
    seed: int
    agent_steps: int
    frames: int
    wall_time_s: Number
    checkpoint: str
    """File name of the checkpoint."""
    returns: list[Number]
    lengths_frames: list[int]
    mean_return: Number
    superseded: bool
    state: Literal["queued", "running", "done", "failed"]
    error: str | None

    @classmethod
    def of(cls, evaluation: Evaluation, job: Job | None) -> "EvaluationOut":
        """From its row, and that of the job that does it where it was asked for."""
        row = {name: getattr(evaluation, name) for name in cls.model_fields if hasattr(evaluation, name)}
        state = "done" if evaluation.mean_return is not None or job is None else job.state
        return cls.model_validate(row | {"state": state, "error": job.error if job else None})


class EvaluationPage(Page[EvaluationOut]):
    """A page of evaluations."""
