"""Table `runs`: what was asked for, where it stands, who holds it."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.specs.states import RunState


class Run(Base):
    """A run. `state` changes only in `backend.runs.repository.transition`."""

    __tablename__ = "runs"
    __table_args__ = (
        Index(None, "state", "queue", "priority", "id"),
        Index(None, "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    """A ULID: sorts by creation."""
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    name: Mapped[str] = mapped_column(String(200))
    algorithm: Mapped[str] = mapped_column(String(50), index=True)
    environment: Mapped[str] = mapped_column(String(200), index=True)
    spec: Mapped[dict[str, Any]]
    """The whole RunSpec, defaults filled in."""
    seed: Mapped[int] = mapped_column(BigInteger)
    queue: Mapped[str] = mapped_column(String(50))
    wanted_host: Mapped[str | None] = mapped_column(String(200))
    priority: Mapped[int] = mapped_column(default=0)
    group: Mapped[str | None] = mapped_column(String(200), index=True)
    tags: Mapped[list[str]]
    notes: Mapped[str] = mapped_column(Text, default="")
    archived: Mapped[bool] = mapped_column(default=False)
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"), index=True)
    """The run whose checkpoint it began from."""
    forked_at_agent_steps: Mapped[int | None] = mapped_column(BigInteger)
    """Agent steps of that checkpoint; its own points begin there."""
    memory_estimate_bytes: Mapped[int] = mapped_column(BigInteger)

    state: Mapped[RunState] = mapped_column(String(20))
    state_reason: Mapped[str] = mapped_column(Text, default="")
    stop_requested: Mapped[str | None] = mapped_column(String(10))
    """`stop` or `kill`, while someone wants the run to end."""
    attempt: Mapped[int] = mapped_column(default=0)
    """The attempt that may write. Any other attempt's write changes nothing."""
    attempts_without_checkpoint: Mapped[int] = mapped_column(default=0)
    host: Mapped[str | None] = mapped_column(String(200))
    """The host that holds the lease."""
    lease_expires_at: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    """Traceback or exit status of the last failure."""

    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """Counts commits that changed anything a page shows."""
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    agent_steps: Mapped[int] = mapped_column(BigInteger, default=0)
    frames: Mapped[int] = mapped_column(BigInteger, default=0)
    updates: Mapped[int] = mapped_column(BigInteger, default=0)
    episodes: Mapped[int] = mapped_column(BigInteger, default=0)
    wall_time_s: Mapped[float] = mapped_column(default=0.0)
    agent_steps_per_s: Mapped[float | None]
    score: Mapped[float | None]
    """Mean true return of the last 100 training episodes."""
    best_return: Mapped[float | None]
