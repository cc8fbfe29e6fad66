"""Hosts as REST shows them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from backend.pagination import Page
from backend.specs.states import RunState


class HostRun(BaseModel):
    """A run on a host."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    state: RunState


class GpuLoad(BaseModel):
    """How busy one GPU is."""

    gpu_pct: float | None = None
    memory_used_bytes: float | None = None
    memory_bytes: float | None = None


class RecentLoad(BaseModel):
    """Shares in use, from 0 to 1: some minutes of readings, oldest first, the latest last."""

    cpu: list[float] = []
    memory: list[float] = []
    gpus: list[list[float]] = []
    """Of each GPU."""


class HostLoad(BaseModel):
    """How busy a host is; null where it does not say."""

    cpu_pct: float | None = None
    """Of all cores together, since the reading before."""
    memory_used_bytes: float | None = None
    gpus: list[GpuLoad] = []
    recent: RecentLoad = RecentLoad()


class HostOut(BaseModel):
    """A machine with a worker."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    first_seen_at: datetime
    last_seen_at: datetime
    alive: bool
    """Heard of lately."""
    draining: bool
    """Finishes what it has and takes nothing new."""
    queues: list[str]
    slots: int
    cpu_count: int
    memory_bytes: int
    devices: list[str]
    environments: list[str]
    """Ids of the worlds it can make."""
    versions: dict[str, str]
    load: HostLoad
    runs: list[HostRun]
    """What runs there."""


class HostPage(Page[HostOut]):
    """All hosts."""

    waiting: dict[str, int]
    """Runs that wait, by queue."""
