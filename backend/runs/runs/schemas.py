"""Request and response bodies of runs."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
    Tag,
)

from backend.db import Run
from backend.platform.schemas import DescribedBy, Id, Number, Page
from backend.runs.runs.external_spec import ExternalFields
from backend.runs.runs.groups import is_early
from backend.runs.runs.names import Beside
from backend.runs.runs.script_provenance import ProcessOut
from backend.specs.annealing import Annealing
from backend.specs.fields import NAME, Schema, Strict, whole
from backend.specs.problems import FieldProblem, InvalidSpec, message_of, quoted
from backend.specs.provenance import Provenance
from backend.specs.run import StopSpec, in_declared_order
from backend.specs.run_fields import (
    CALLBOARD,
    EXTERNAL,
    MAX_SEEDS,
    ChosenName,
    GivenName,
    GroupName,
    Notes,
    Origin,
    Priority,
    ProjectName,
    RunOptions,
    Seed,
    StartOptions,
    Tags,
)
from backend.specs.states import RunState
from callboard.known_tags import RunUnit

Seeds = Annotated[
    list[Annotated[Seed, BeforeValidator(whole)]] | None, Field(min_length=1, max_length=MAX_SEEDS)
]
GridValues = dict[str, list[JsonValue]] | None
MAX_NAMED = 10_000
"""Runs of one view."""


class CommandFields(StartOptions):
    """A run of a host's command to create. Parameters left out of `config` have their defaults."""

    command: str = Field(description="Name of a command, from `GET /commands`.")
    config: dict[str, JsonValue] = Field(default={}, description="The command's parameters.")
    seed: Seed | None = Field(default=None, description="Seed that a command which takes one is given.")
    seeds: Seeds = Field(default=None, description="One run per seed, instead of `seed`.")
    grid: GridValues = Field(
        default=None, description="Values by parameter, such as `config.learning_rate`, as for `algorithm`."
    )


class RunFields(RunOptions):
    """A run to create. Settings left out of `config` and `environment_config` have their defaults."""

    origin: Literal["callboard"] | None = Field(
        default=None, description="`callboard`, the default: a worker of this installation trains it."
    )
    algorithm: str = Field(description="An id from `GET /algorithms`.")
    environment: str = Field(description="An id from `GET /environments`.")
    stop: StopSpec
    """Limits of the run: it ends when it reaches the first of them."""
    config: dict[str, JsonValue] = Field(default={}, description="The algorithm's settings.")
    environment_config: dict[str, JsonValue] = Field(default={}, description="The environment's settings.")
    seed: Seed | None = Field(default=None, description="Seed of all random numbers; default: 0.")
    seeds: Seeds = Field(default=None, description="One run per seed, instead of `seed`.")
    grid: GridValues = Field(
        default=None,
        description='Values by field, such as `{"config.learning_rate": [0.001, 0.003]}`: one run per '
        f"combination of values and seed, at most {MAX_SEEDS}.",
    )


def _origin(body: Any) -> str:
    """The origin that a request names, which decides its fields, by default `callboard`; or `command`.

    Raises:
        InvalidSpec: the request is no object, or there is no such origin.
    """
    if not isinstance(body, dict):
        message = message_of({"type": "dict_type", "input": body})
        raise InvalidSpec([FieldProblem(field="body", message=message)])
    origin = body.get("origin")
    if origin is None:
        return COMMAND if COMMAND in body else CALLBOARD
    if origin not in (CALLBOARD, EXTERNAL):
        message = f"must be {CALLBOARD} or {EXTERNAL}, got {quoted(origin)}"
        raise InvalidSpec([FieldProblem(field="origin", message=message)])
    return str(origin)


RunBody = Annotated[dict[Any, Any], DescribedBy(RunFields)]
"""A request for runs. Algorithm and environment decide which settings there are, so that `runs.requests`
validates it as a whole."""
CommandBody = Annotated[dict[Any, Any], DescribedBy(CommandFields)]
"""A request for runs of a command, validated as a whole too: its hosts know its parameters."""
COMMAND = "command"
RunRequest = Annotated[
    Annotated[RunBody, Tag(CALLBOARD)]
    | Annotated[CommandBody, Tag(COMMAND)]
    | Annotated[ExternalFields, Tag(EXTERNAL)],
    Discriminator(_origin),
]
"""The body of `POST /runs`."""


class RunExpectation(Strict):
    """What the sender of a change has read of the run: fields that are left out may have any value."""

    name: GivenName | None = None
    """Name of the run."""
    notes: Notes | None = None
    """Free text about the run, in Markdown."""
    tags: Tags | None = None
    """Labels of the run."""
    group: GroupName | None = None
    """Name of the group that the run belongs to; null for none."""
    project: ProjectName | None = None
    """Project that the run is filed under."""
    priority: Priority | None = None
    """Priority of the run."""
    return_metric: Annotated[str, StringConstraints(max_length=200, pattern=NAME)] | None = None
    """The metric by which an external run is scored; null for none."""


class RunChanges(Strict):
    """The body of `PATCH /runs/{id}`: fields that are left out do not change."""

    expected: RunExpectation | None = None
    """Values before the change, as they were read: if one has been changed meanwhile, the answer is 409 with
    the code `changed_meanwhile`, and nothing changes. Without it, the last change wins."""
    name: ChosenName | None = None
    """New name; null changes nothing."""
    notes: Notes | None = None
    """New notes, in Markdown; null changes nothing."""
    tags: Tags | None = None
    """New labels, which replace all former ones; null changes nothing."""
    group: GroupName | None = Field(default=None, description="New group; empty or null for none.")
    project: ProjectName | None = None
    """New project; null changes nothing."""
    priority: Priority | None = None
    """New priority; null changes nothing. Queued runs with a higher priority are claimed first."""
    return_metric: Annotated[str, StringConstraints(max_length=200, pattern=NAME)] | None = None
    """One of the metrics of an external run, by which it is scored anew; null for that of a known library, if
    it has one."""


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
    """Whether lists hide the run."""


class MoveRequest(Strict):
    """The body of `POST /runs/{id}/queue`."""

    after: Id | None = None
    """Id of the queued run that is to be claimed directly before it; null for the front of the queue."""


class RunOut(Schema):
    """A run."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the run: a ULID, which sorts by the time of creation."""
    origin: Origin
    """Where the run is trained: `callboard` by a worker of this installation, `external` elsewhere."""
    command: str | None = Field(examples=["train"])
    """Name of the host's command by which a worker runs an external run; null for all others."""
    name: str = Field(examples=["PAAC on Pong"])
    """Name of the run, as pages show it."""
    algorithm: str = Field(examples=["paac"])
    """Id from `GET /algorithms`; of an external run, the name that its script has chosen."""
    environment: str = Field(examples=["ALE/Pong-v5"])
    """Id from `GET /environments`; of an external run, the name that its script has chosen."""
    seed: int = Field(examples=[3])
    """Seed of all random numbers of the run."""
    seed_is_known: bool
    """False for an external run whose script has named no seed: `seed` is 0 then."""
    state: RunState
    """State of the run."""
    state_reason: str = Field(examples=["reached 10,000,000 agent steps"])
    """Why the run is in its state."""
    stop_requested: Literal["stop", "kill"] | None
    """`stop` or `kill` while such a request is pending; null otherwise."""
    checkpoint_requested_at: datetime | None
    """When a checkpoint was requested, until one is saved; null otherwise."""
    created_at: datetime
    """When the run was created."""
    created_by: str | None
    """Id of the user who created the run; null for a run that was imported on the command line, or if that
    user has been deleted."""
    started_at: datetime | None
    """When the first attempt started; null before."""
    ended_at: datetime | None
    """When the run ended; null before."""
    queue: str = Field(examples=["cpu"])
    """Queue from which hosts claim the run; empty for an external run."""
    wanted_host: str | None
    """Id of the only host that may claim the run; null for any host."""
    priority: int
    """Runs with a higher priority are claimed first."""
    group: str | None = Field(examples=["learning rates"])
    """Name of the group that the run belongs to; null for none."""
    project: str = Field(examples=["default"])
    """Project that the run is filed under."""
    tags: list[str]
    """Labels for finding and filtering runs."""
    notes: str
    """Free text about the run, in Markdown."""
    archived: bool
    """Whether lists hide the run."""
    demo: bool
    """Whether it is the demo run, which came with the installation. Lists have it only by its id or with the
    filter `demo:true`."""
    parent_id: str | None
    """Id of the run that it was forked from; null for none, or if that run has been deleted."""
    forked_at_agent_steps: int | None
    """Agent steps of the checkpoint it was forked from; its own points start there."""
    memory_estimate_bytes: int = Field(examples=[734_003_200])
    """Memory that a host reserves for the run; 0 for an external run."""
    attempt: int
    """Number of the latest attempt, from 1; 0 before the first, and for an external run."""
    attempts_without_checkpoint: int
    """Attempts since the newest checkpoint that are active or have ended by themselves."""
    host: str | None = Field(examples=["lab-3"])
    """Id of the host that holds the run; null if none does."""
    lease_expires_at: datetime | None
    """When the host's lease ends unless it is renewed; null without a lease. An external run is lost then,
    unless its script sends something before."""
    error: str | None
    """Traceback, exit status or message of the last failure; null without one."""
    revision: int = Field(examples=[42])
    """Number of changes of the run so far, its data included. Send it back as `since_revision` to get later
    data only."""
    step_unit: RunUnit
    """What `agent_steps` counts: `iterations` of some external runs."""
    return_metric: str | None
    """The metric by which an external run is scored; null for Callboard's own runs, or if none of its metrics
    is known to be a return."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps (decisions) of the run so far; of some external runs, iterations: see `step_unit`."""
    frames: int = Field(examples=[4_000_000])
    """Emulator frames of the run so far; Atari has four per agent step by default."""
    updates: int = Field(examples=[6_250])
    """Updates of the parameters so far."""
    episodes: int = Field(examples=[812])
    """Training episodes that have ended so far."""
    wall_time_s: Number = Field(examples=[294.5])
    """Training time so far in seconds, summed over attempts, without evaluations."""
    agent_steps_per_s: Number = Field(examples=[3_400.0])
    """Agent steps per second, averaged over about the last two minutes of training; null before the first
    report."""
    score: Number = Field(examples=[17.4])
    """Mean return of the last 100 training episodes, rewards not clipped; null before the first has ended."""
    score_is_early: bool
    """Whether `score` is that of the first, short episodes: most agent steps are those of episodes that have
    not ended. Such a score enters no rank, group or verdict."""
    best_return: Number = Field(examples=[21.0])
    """Highest return of a training episode so far, rewards not clipped; null before the first has ended."""
    progress: Number = Field(examples=[0.71])
    """Progress to the nearest limit, from 0 to 1; null if only a score ends the run."""
    time_left_s: Number = Field(examples=[118.0])
    """Remaining training time at the current speed; null if unknown."""
    departures: dict[str, str] = Field(examples=[{"learning_rate": "0.003 → 0.0005 at 234k"}])
    """How its training departs from `spec`, by setting: changed live, resumed with other rates, or another
    major version of the simulator. Runs of other departures are no seeds of one config."""
    spec: dict[str, Any]
    """The whole specification, defaults included; of an external run, what its script has sent. In lists
    empty unless `spec=true` asks for it."""

    @classmethod
    def of(cls, run: Run, *, with_spec: bool = True) -> Self:
        """From a run's row."""
        row = {name: getattr(run, name) for name in cls.model_fields if hasattr(run, name)}
        row["score_is_early"] = is_early(run)
        row["seed_is_known"] = run.spec.get("seed_is_known", True)
        row["spec"] = in_declared_order(run.spec) if with_spec else {}
        return cls.model_validate(row)


class RunItems(Schema):
    """The runs created by one request: one without `seeds` and `grid`."""

    items: list[RunOut]
    """The created runs, in the order of the grid's combinations and, within each, of the seeds."""
    warnings: list[str] = Field(default=[])
    """Why no host that may claim them can run them well, and which settings have no effect, as in
    `POST /runs/estimate`."""
    records_scripts: bool = Field(default=True)
    """Whether this installation stores where scripts come from, what they print and what they use."""


class RunEstimate(Schema):
    """What the runs of a request would need: of several, the one that needs most."""

    memory_bytes: int
    """The most memory that a run may need."""
    warnings: list[str]
    """Why no host that may claim them can run them well, and which presets fit: too little memory, or many
    more processes than cores; nothing while no host provides their environment and device, unless the
    wanted host does not exist. Also names settings that have no effect."""


class ProjectOut(Schema):
    """A project: what its runs name."""

    name: str = Field(examples=["default"])
    """Name of the project."""
    n_runs: int
    """Number of its runs that are not archived."""


class ProjectItems(Schema):
    """Every project that a run is filed under."""

    items: list[ProjectOut]
    """The projects, in alphabetical order."""


class RunPage(Page):
    """A page of runs, and the total number of runs."""

    items: list[RunOut]
    """Runs of this page, in the requested order."""

    total: int = Field(examples=[128])
    """Number of runs that match, on all pages together."""


class NamesRequest(Strict):
    """The body of `POST /runs/names`."""

    runs: list[Id] = Field(max_length=MAX_NAMED)
    """Ids of all runs that the view shows."""
    beside: list[Beside] = Field(default_factory=list, max_length=2)
    """What the view shows beside each name, which names then leave out."""


class RunName(Schema):
    """What a run is called in a view."""

    run: Id
    """Id of the run."""
    name: str = Field(examples=["lr 0.001 · nₑ 8 · seed 3"])
    """The name that a person gave, then algorithm, environment, settings and seed as far as they differ
    among the runs of the view."""


class RunNames(Schema):
    """Response of `POST /runs/names`."""

    shared: str = Field(examples=["PAAC · CartPole"])
    """What the names have in common, which they leave out; empty for a single run."""
    items: list[RunName]
    """In the order of the request, of which unknown ids are left out; no two names are equal, unless what is
    beside them differs."""


class DeletedRunOut(Schema):
    """A deleted run that can be restored."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the run."""
    name: str = Field(examples=["PAAC on Pong"])
    """Name of the run, as pages show it."""
    algorithm: str = Field(examples=["paac"])
    """Id of the algorithm."""
    environment: str = Field(examples=["ALE/Pong-v5"])
    """Id of the environment."""
    state: RunState
    """State of the run."""
    step_unit: RunUnit
    """What `agent_steps` counts: `iterations` of some external runs."""
    agent_steps: int
    """Agent steps that the run has trained."""
    score: Number = Field(examples=[17.4])
    """Mean true return of the last 100 training episodes; null before the first."""
    deleted_at: datetime
    """When the run was deleted."""
    restorable_until: datetime
    """When the run and its files are deleted for good."""


class DeletedRunPage(Page):
    """A page of deleted runs that can be restored, and their number."""

    items: list[DeletedRunOut]
    """Runs of this page, those deleted last first."""

    total: int = Field(examples=[3])
    """Number of these runs, on all pages together."""


class AttemptOut(Schema):
    """One claim of a run by a host."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    """Number of the attempt, from 1."""
    host: str = Field(examples=["lab-3"])
    """Id of the host that claimed the run for this attempt."""
    claimed_at: datetime
    """When the host claimed the run."""
    ended_at: datetime | None
    """When the attempt ended; null while it is active."""
    outcome: str | None
    """State that the run had after the attempt, and why; null while the attempt is active."""
    resumed_from_agent_steps: int
    """Agent steps of the checkpoint that the attempt resumed from; 0 if it started from scratch."""
    provenance: Provenance | None
    """What it was trained with; null before its engine has reported it."""


class TransitionOut(Schema):
    """One state transition."""

    model_config = ConfigDict(from_attributes=True)

    time: datetime
    """When the state changed."""
    before: RunState | None
    """State before the change; null for the creation of the run."""
    after: RunState
    """State after the change."""
    attempt: int
    """Number of the run's latest attempt at that time; 0 before the first."""
    reason: str
    """Why the state changed."""


class ChildOut(Schema):
    """A fork of this run."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the fork."""
    name: str = Field(examples=["PAAC on Pong, learning rate halved"])
    """Name of the fork, as pages show it."""
    state: RunState
    """State of the fork."""
    forked_at_agent_steps: int
    """Agent steps of the checkpoint that the fork started from."""


class RunDetail(RunOut):
    """A run with its history."""

    children: list[ChildOut] = Field(default=[])
    """Runs that were forked from this one."""

    attempts: list[AttemptOut] = Field(default=[])
    """Every attempt, oldest first."""
    processes: list[ProcessOut] = Field(default=[])
    """The last processes of a script that have logged to an external run, at most 20, oldest first; none if
    the script or the installation has turned that off."""
    transitions: list[TransitionOut] = Field(default=[])
    """Every change of state, oldest first."""
    disk_problem: str | None = Field(default=None, examples=["3 MiB free"])
    """Why its host cannot store what it records, so that its training may stand still; null if it can."""
    silent_s: Number = Field(default=None, examples=[4.2])
    """Time since the script of an external run has sent anything, at the time of the answer; null for other
    runs, and for those that do not run."""


class LogLineOut(Schema):
    """One line of a run's log."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    """Increases with every line; pass the last one as `after` to follow the log."""
    attempt: int
    """Number of the attempt that logged the line; 0 for lines before the first."""
    time: datetime
    """When the line was logged."""
    level: str = Field(examples=["info"])
    """Severity: `debug`, `info`, `warning` or `error`."""
    message: str = Field(examples=["checkpoint saved"])
    """Text of the line."""
    agent_steps: int | None = Field(examples=[1_000_000])
    """Agent steps of the run when the line was logged; null if they are not known."""


class LogPage(Page):
    """A page of a run's log."""

    items: list[LogLineOut]
    """Lines of this page, oldest first."""
