"""Request and response bodies of runs."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    TypeAdapter,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from backend.db import Run
from backend.schemas import Number, Page
from backend.specs.annealing import Annealing
from backend.specs.external import ExternalFields
from backend.specs.fields import Strict
from backend.specs.provenance import Provenance
from backend.specs.run import StopSpec, in_declared_order
from backend.specs.run_fields import (
    MAX_SEEDS,
    GivenName,
    GroupName,
    Notes,
    Origin,
    Priority,
    RunOptions,
    Seed,
    Tags,
)
from backend.specs.states import RunState


class RunFields(RunOptions):
    """A run to create. Settings left out of `config` and `environment_config` have their defaults."""

    origin: Literal["callboard"] | None = Field(
        default=None, description="`callboard`, the default: a worker of this installation trains it."
    )
    algorithm: str = Field(description="An id from `GET /algorithms`.")
    environment: str = Field(description="An id from `GET /environments`.")
    stop: StopSpec
    config: dict[str, JsonValue] = Field(default={}, description="The algorithm's settings.")
    environment_config: dict[str, JsonValue] = Field(default={}, description="The environment's settings.")
    seed: Seed | None = Field(default=None, description="Seed of all random numbers; default: 0.")
    seeds: list[Seed] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_SEEDS,
        description="One run per seed, instead of `seed`.",
    )
    grid: dict[str, list[JsonValue]] | None = Field(
        default=None,
        description='Values by field, such as `{"config.learning_rate": [0.001, 0.003]}`: one run per '
        f"combination of values and seed, at most {MAX_SEEDS}.",
    )


class DescribedAs:
    """Documents a body with a type that does not validate it."""

    def __init__(self, model: Any) -> None:
        schema = TypeAdapter(model).core_schema
        if schema["type"] == "model":  # otherwise the document would have it inline, without its name
            reference = core_schema.definition_reference_schema(schema["ref"])
            schema = core_schema.definitions_schema(reference, [schema])
        self._schema = schema

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the type."""
        return handler(self._schema)


RunRequest = Annotated[dict[str, Any], DescribedAs(RunFields | ExternalFields)]
"""The body of `POST /runs`, validated as a whole by `parse_run_spec` or `parse_external_spec`, so that one
response names every error."""

EstimateRequest = Annotated[dict[str, Any], DescribedAs(RunFields)]
"""The body of `POST /runs/estimate`: that of `POST /runs`."""


class RunChanges(Strict):
    """The body of `PATCH /runs/{id}`: fields that are left out do not change."""

    name: GivenName | None = None
    notes: Notes | None = None
    tags: Tags | None = None
    group: GroupName | None = Field(default=None, description="Empty or null for no group.")
    priority: Priority | None = None


class ResumeRequest(Strict):
    """The body of `POST /runs/{id}/resume`."""

    stop: StopSpec | None = Field(default=None, description="New limits, if the old ones are reached.")
    annealing: Annealing | None = Field(
        default=None,
        description="For a linear learning rate, when the agent-step limit changes: `keep` its schedule, "
        "with a rate of 0 from its end on, or `extend` it to the new limit, with a jump of the rate. "
        "Default: as before, which is `extend` unless the run was resumed with `keep`.",
    )


class ArchiveRequest(Strict):
    """The body of `POST /runs/{id}/archive`."""

    archived: bool = True


class RunOut(BaseModel):
    """A run."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    origin: Origin
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
    """The run that it was forked from."""
    forked_at_agent_steps: int | None
    """Agent steps of the checkpoint it was forked from; its own points start there."""
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
    """From 0 to 1 of the nearest limit; null if only a score ends the run."""
    time_left_s: Number
    """Remaining training time at the current speed; null if unknown."""
    spec: dict[str, Any]
    """The whole specification, defaults included; of an external run, what its script has sent."""

    @classmethod
    def of(cls, run: Run) -> Self:
        """From a run's row."""
        row = {name: getattr(run, name) for name in cls.model_fields if hasattr(run, name)}
        row["spec"] = in_declared_order(run.spec)
        return cls.model_validate(row)


class RunItems(BaseModel):
    """The runs created by one request: one without `seeds` and `grid`."""

    items: list[RunOut]
    warnings: list[str] = []
    """Why no host that may claim them can run them well, and which settings have no effect, as in
    `POST /runs/estimate`."""


class RunEstimate(BaseModel):
    """What the runs of a request would need: of several, the one that needs most."""

    memory_bytes: int
    """The most memory that a run may need."""
    warnings: list[str]
    """Why no host that may claim them can run them well, and which presets fit: too little memory, or many
    more processes than cores; nothing while no host provides their environment and device, unless the
    wanted host does not exist. Also names settings that have no effect."""


class RunPage(Page[RunOut]):
    """A page of runs, and the total number of runs."""

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
    provenance: Provenance | None
    """What it was trained with; null before its engine has reported it."""


class TransitionOut(BaseModel):
    """One state transition."""

    model_config = ConfigDict(from_attributes=True)

    time: datetime
    before: RunState | None
    after: RunState
    attempt: int
    reason: str


class ChildOut(BaseModel):
    """A fork of this run."""

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
    """Increases with every line; pass the last one as `after` to follow the log."""
    attempt: int
    time: datetime
    level: str
    message: str
    agent_steps: int | None


class LogPage(Page[LogLineOut]):
    """A page of a run's log."""
