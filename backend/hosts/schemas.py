"""Response bodies of hosts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict

from backend.db import Run
from backend.hosts.waiting import ActiveHost, why_waiting
from backend.schemas import Number, Page
from backend.specs.states import RunState


class HostRun(BaseModel):
    """A run on a host."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    state: RunState
    progress: Number
    """From 0 to 1 of the nearest limit; null if only a score ends the run."""
    time_left_s: Number
    """Remaining training time at the current speed; null if unknown."""
    agent_steps_per_s: Number


class WaitingRun(BaseModel):
    """A queued run."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    priority: int
    queue: str
    wanted_host: str | None
    created_at: datetime


class WaitingRunOut(WaitingRun):
    """A queued run, and why no host has claimed it."""

    reason: str

    @classmethod
    def of(cls, run: Run, hosts: Sequence[ActiveHost]) -> Self:
        """From the rows of the run and of every host."""
        row = WaitingRun.model_validate(run).model_dump()
        return cls(**row, reason=why_waiting(run, hosts))


class QueuePlace(BaseModel):
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


class GpuLoad(BaseModel):
    """Load of one GPU; null for values it does not report."""

    index: int | None = None
    """Its number on the host, as `nvidia-smi` prints it."""
    gpu_pct: float | None = None
    memory_used_bytes: float | None = None
    memory_bytes: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None


class RecentLoad(BaseModel):
    """Utilisation from 0 to 1 in the latest readings, oldest first."""

    cpu: list[float] = []
    memory: list[float] = []
    gpus: list[list[float]] = []
    """One list per GPU."""
    duration_s: float | None = None
    """From the oldest reading to the latest; null from workers that do not report it."""


class HostLoad(BaseModel):
    """Load of a host; null for values it does not report."""

    cpu_pct: float | None = None
    """Utilisation of all cores together since the previous measurement."""
    memory_used_bytes: float | None = None
    disk_bytes: int | None = None
    """Size of the disk of its run directories."""
    disk_free_bytes: int | None = None
    disk_problem: str | None = None
    """Why it claims no runs; null while its disk has space and works."""
    gpus: list[GpuLoad] = []
    recent: RecentLoad = RecentLoad()


class HostOut(BaseModel):
    """A machine with a worker."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    first_seen_at: datetime
    last_seen_at: datetime
    stopped_at: datetime | None
    """When its worker stopped; null while it runs, and where no orderly stop was recorded."""
    alive: bool
    """Whether it has sent a heartbeat recently, and its worker has not stopped since."""
    draining: bool
    """Whether it accepts no new runs."""
    queues: list[str]
    slots: int
    cpu_count: int
    memory_bytes: int
    devices: list[str]
    """`cpu`, with the bf16 instruction sets of its processor in parentheses, and each GPU."""
    environments: list[str]
    """Ids of the environments it can run."""
    versions: dict[str, str]
    load: HostLoad
    runs: list[HostRun]
    """Active runs."""

    @classmethod
    def of(cls, active: ActiveHost) -> Self:
        """From the rows of the host and of its runs."""
        row = {name: getattr(active.host, name) for name in cls.model_fields if hasattr(active.host, name)}
        runs = [HostRun.model_validate(run) for run in active.runs]
        return cls.model_validate(row | {"alive": active.alive, "runs": runs})


class HostPage(Page[HostOut]):
    """All hosts."""

    waiting: dict[str, int]
    """Number of queued runs by queue."""
    waiting_runs: list[WaitingRunOut]
    """The first of them, in the order in which hosts claim them."""
