"""Hosts as REST shows them."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from backend.pagination import Page
from backend.specs.states import RunState


class HostRun(BaseModel):
    """A run on a host."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    state: RunState


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
    load: dict[str, Any]
    """Latest reading: `cpu_pct`, `memory_used_bytes`, per-GPU use."""
    runs: list[HostRun]
    """What runs there."""


class HostPage(Page[HostOut]):
    """All hosts."""

    waiting: dict[str, int]
    """Runs that wait, by queue."""
