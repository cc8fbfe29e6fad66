"""Response bodies of hosts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import ConfigDict, Field

from backend.db import Run
from backend.fleet.hosts.waiting import ActiveHost, why_waiting
from backend.platform.schemas import Id, Number, Page
from backend.specs.extras import missing_extras
from backend.specs.fields import Schema
from backend.specs.host_load import HostLoad
from backend.specs.states import RunState


class HostRun(Schema):
    """A run on a host."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the run."""
    name: str = Field(examples=["PAAC on Pong"])
    """Name of the run, as pages show it."""
    state: RunState
    """State of the run."""
    progress: Number = Field(examples=[0.71])
    """Progress to the nearest limit, from 0 to 1; null if only a score ends the run."""
    time_left_s: Number = Field(examples=[118.0])
    """Remaining training time at the current speed; null if unknown."""
    agent_steps_per_s: Number = Field(examples=[3_400.0])
    """Agent steps per second, averaged over about the last two minutes of training; null before the first
    report."""


class WaitingRun(Schema):
    """A queued run."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the run."""
    name: str = Field(examples=["PAAC on Pong"])
    """Name of the run, as pages show it."""
    priority: int
    """Runs with a higher priority are claimed first."""
    queue: str = Field(examples=["cpu"])
    """Queue from which hosts claim the run."""
    wanted_host: str | None
    """Id of the only host that may claim the run; null for any host."""
    created_at: datetime
    """When the run was created."""


class WaitingRunOut(WaitingRun):
    """A queued run, and why no host has claimed it."""

    reason: str
    """Why no host has claimed the run yet."""

    @classmethod
    def of(cls, run: Run, hosts: Sequence[ActiveHost]) -> Self:
        """From the rows of the run and of every host."""
        row = WaitingRun.model_validate(run).model_dump()
        return cls(**row, reason=why_waiting(run, hosts))


class QueuePlace(Schema):
    """A queued run's place among the runs that the same hosts may claim."""

    model_config = ConfigDict(from_attributes=True)

    position: int
    """From 1, in the order in which hosts claim runs: the highest priority, then the oldest."""
    waiting: int
    """Number of these runs."""
    ahead: list[WaitingRun]
    """The first of the runs that are claimed earlier."""
    reason: str
    """Why no host has claimed the run."""
    expected_start_at: datetime | None
    """Estimated from the limits and speeds of the runs before it; null if unknown."""
    unknown_start: str | None
    """Why the expected start is unknown."""


class HostOut(Schema):
    """A machine with a worker."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(examples=["lab-3"])
    """Id of the host, by which runs can ask for it."""
    first_seen_at: datetime
    """When the host's worker sent its first heartbeat."""
    last_seen_at: datetime
    """When the host's worker sent its latest heartbeat."""
    stopped_at: datetime | None
    """When its worker stopped; null while it runs, and where no orderly stop was recorded."""
    alive: bool
    """Whether it has sent a heartbeat recently, and its worker has not stopped since."""
    draining: bool
    """Whether it accepts no new runs."""
    queues: list[str]
    """Queues from which the host claims runs."""
    slots: int = Field(examples=[2])
    """Number of runs that the host trains at the same time."""
    cpu_count: int = Field(examples=[16])
    """Number of processor cores."""
    memory_bytes: int
    """Memory of the host."""
    devices: list[str]
    """`cpu`, with the bf16 instruction sets of its processor in parentheses, and each GPU."""
    environments: list[str]
    """Ids of the environments it can run."""
    commands: list[str] = Field(examples=[["train"]])
    """Names of the commands that runs may start on it."""
    versions: dict[str, str]
    """Version of each package that training depends on."""
    missing_extras: list[str] = Field(examples=[["racing"]])
    """Extras of Callboard that it lacks, such as `racing`, without which it cannot run some environments or
    algorithms."""
    load: HostLoad
    """Latest reading of the host's load."""
    runs: list[HostRun]
    """Active runs."""

    @classmethod
    def of(cls, active: ActiveHost, load: HostLoad) -> Self:
        """From the rows of the host and of its runs, and its load."""
        row = {name: getattr(active.host, name) for name in cls.model_fields if hasattr(active.host, name)}
        runs = [HostRun.model_validate(run) for run in active.runs]
        lacking = missing_extras(active.host.versions)
        changed = {"alive": active.alive, "runs": runs, "missing_extras": lacking, "load": load}
        changed["commands"] = [str(row.get("name")) for row in active.host.commands]
        return cls.model_validate(row | changed)


class HostPage(Page):
    """All hosts."""

    items: list[HostOut]
    """Every host, by id."""

    waiting: dict[str, int]
    """Number of queued runs by queue."""
    waiting_runs: list[WaitingRunOut]
    """The first of them, in the order in which hosts claim them."""
