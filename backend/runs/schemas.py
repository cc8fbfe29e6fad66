"""Runs as REST shows them and takes them."""

import math
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from backend.db import Run
from backend.pagination import Page
from backend.specs.fields import Strict
from backend.specs.run import MAX_SEED, StopSpec, Tag
from backend.specs.states import RunState
from backend.text import Text

MAX_SEEDS = 100


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite)]
"""A measured number: null where there is none, or where it is not finite."""


class RunFields(BaseModel):
    """What to run. `config` and `environment_config` may leave out what keeps its default."""

    model_config = ConfigDict(extra="forbid")

    algorithm: str = Field(description="An id from `GET /algorithms`.")
    environment: str = Field(description="An id from `GET /environments`.")
    stop: StopSpec
    config: dict[str, JsonValue] = Field(default={}, description="The algorithm's settings.")
    environment_config: dict[str, JsonValue] = Field(default={}, description="The world's settings.")
    name: Text | None = Field(default=None, max_length=200)
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    seeds: list[Annotated[int, Field(ge=0, le=MAX_SEED)]] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_SEEDS,
        description="One run a seed, answered with `items`; instead of `seed`.",
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"
    queue: Literal["cpu", "gpu"] = "cpu"
    host: Text | None = Field(default=None, max_length=200, description="Only this host may take it.")
    priority: int = Field(default=0, ge=-100, le=100, description="Higher goes first.")
    group: Text | None = Field(default=None, max_length=200)
    tags: list[Tag] = Field(default=[], max_length=50)
    notes: Text = Field(default="", max_length=20_000)


class _DescribedAs:
    """Documents a body as a model that does not check it."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(self._model.__pydantic_core_schema__)


RunRequest = Annotated[dict[str, Any], _DescribedAs(RunFields)]
"""The body of `POST /runs`, checked whole by `parse_run_spec`, so that one answer names every fault."""


class RunChanges(Strict):
    """The body of `PATCH /runs/{id}`: what is left out stays as it is."""

    name: Text | None = Field(default=None, min_length=1, max_length=200)
    notes: Text | None = Field(default=None, max_length=20_000)
    tags: list[Tag] | None = Field(default=None, max_length=50)
    group: Text | None = Field(default=None, max_length=200, description="Empty or null: no group.")
    priority: int | None = Field(default=None, ge=-100, le=100)


class ResumeRequest(Strict):
    """The body of `POST /runs/{id}/resume`."""

    stop: StopSpec | None = Field(default=None, description="New bounds, where the old ones are reached.")


class ArchiveRequest(Strict):
    """The body of `POST /runs/{id}/archive`."""

    archived: bool = True


class RunOut(BaseModel):
    """A run."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    algorithm: str
    environment: str
    seed: int
    state: RunState
    state_reason: str
    stop_requested: Literal["stop", "kill"] | None
    created_at: datetime
    created_by: str | None
    started_at: datetime | None
    ended_at: datetime | None
    queue: str
    wanted_host: str | None
    priority: int
    group: str | None
    tags: list[str]
    notes: str
    archived: bool
    parent_id: str | None
    """The run whose checkpoint it began from."""
    forked_at_agent_steps: int | None
    """Agent steps of that checkpoint; its own points begin there."""
    memory_estimate_bytes: int
    attempt: int
    attempts_without_checkpoint: int
    host: str | None
    lease_expires_at: datetime | None
    error: str | None
    revision: int
    agent_steps: int
    frames: int
    updates: int
    episodes: int
    wall_time_s: Number
    agent_steps_per_s: Number
    """Averaged over about the last ten seconds of training."""
    score: Number
    best_return: Number
    progress: Number
    """From 0 to 1 of the nearest bound; null when only a score ends the run."""
    time_left_s: Number
    """Training time still to go at the present rate; null when it cannot be told."""
    spec: dict[str, Any]
    """The whole specification, defaults filled in."""

    @classmethod
    def of(cls, run: Run) -> Self:
        """From a run's row."""
        row = {name: getattr(run, name) for name in cls.model_fields if hasattr(run, name)}
        return cls.model_validate(row | {"progress": progress(run), "time_left_s": time_left_s(run)})


class RunItems(BaseModel):
    """The runs made from one request with `seeds`."""

    items: list[RunOut]


class RunPage(Page[RunOut]):
    """A page of runs, and how many there are on all pages."""

    total: int


class AttemptOut(BaseModel):
    """One claim of a run by a host."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    host: str
    claimed_at: datetime
    ended_at: datetime | None
    outcome: str | None
    resumed_from_agent_steps: int


class TransitionOut(BaseModel):
    """One change of state."""

    model_config = ConfigDict(from_attributes=True)

    time: datetime
    before: RunState | None
    after: RunState
    attempt: int
    reason: str


class ChildOut(BaseModel):
    """A run that began from a checkpoint of this one."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    state: RunState
    forked_at_agent_steps: int


class RunDetail(RunOut):
    """A run with its history."""

    children: list[ChildOut] = []

    attempts: list[AttemptOut] = []
    transitions: list[TransitionOut] = []


class LogLineOut(BaseModel):
    """One line of a run's log."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    """Rises with every line; give the last one as `after` to follow."""
    attempt: int
    time: datetime
    level: str
    message: str
    agent_steps: int | None


class LogPage(Page[LogLineOut]):
    """A page of a run's log."""


def progress(run: Run) -> float | None:
    """How much of the run is done, from 0 to 1, by whichever bound is nearest."""
    if run.state == RunState.FINISHED:
        return 1.0
    stop = run.spec["stop"]
    done = [
        reached / bound
        for reached, bound in ((run.agent_steps, stop["agent_steps"]), (run.wall_time_s, stop["wall_time_s"]))
        if bound
    ]
    return min(1.0, max(done)) if done else None


def time_left_s(run: Run) -> float | None:
    """Training time to the nearest bound, while the run is running."""
    if run.state != RunState.RUNNING:
        return None
    stop = run.spec["stop"]
    left = []
    if stop["wall_time_s"]:
        left.append(stop["wall_time_s"] - run.wall_time_s)
    if stop["agent_steps"] and run.agent_steps_per_s:
        left.append((stop["agent_steps"] - run.agent_steps) / run.agent_steps_per_s)
    return max(0.0, min(left)) if left else None
