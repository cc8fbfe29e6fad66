"""Request and response bodies of evaluations."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from backend.db import Evaluation, Job, Run
from backend.runs.groups import human_normalised_pct
from backend.schemas import Number, Page
from backend.specs.fields import Strict
from backend.specs.run_fields import Seed
from backend.text import Text


class EvaluationRequest(Strict):
    """The body of `POST /runs/{id}/evaluations`."""

    protocol: Text | None = Field(
        default=None, max_length=50, description="Id of a protocol; default: that of the run's evaluations."
    )
    episodes: int = Field(default=30, ge=1, le=1_000)
    seed: Seed = 0
    checkpoint: Text | None = Field(
        default=None, max_length=26, description="Id of a checkpoint of this run; default: the latest."
    )


class ProtocolOut(BaseModel):
    """One way to score an agent."""

    id: str
    title: str
    description: str
    unavailable: str | None
    """Why it cannot be used; null if it can."""


class Protocols(BaseModel):
    """Response of `GET /runs/{id}/evaluations/protocols`."""

    default: str
    """Id of the protocol of the run's own evaluations."""
    items: list[ProtocolOut]


class EvaluationOut(BaseModel):
    """Scores of one checkpoint."""

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
    human_normalised_pct: Number
    """100 (mean return - random) / (human - random); null unless both are published for its protocol and
    evaluation config."""
    superseded: bool
    state: Literal["queued", "running", "done", "failed"]
    error: str | None

    @classmethod
    def of(cls, evaluation: Evaluation, job: Job | None, run: Run) -> "EvaluationOut":
        """From the rows of the evaluation, of its run and, if requested, of its job."""
        score = evaluation.mean_return
        normalised = None if score is None else human_normalised_pct(run, evaluation.protocol, score)
        row = {name: getattr(evaluation, name) for name in cls.model_fields if hasattr(evaluation, name)}
        state = "done" if evaluation.mean_return is not None or job is None else job.state
        extra = {"human_normalised_pct": normalised, "state": state, "error": job.error if job else None}
        return cls.model_validate(row | extra)


class EvaluationPage(Page[EvaluationOut]):
    """A page of evaluations."""
