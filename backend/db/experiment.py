"""Tables `experiments` and `experiment_cells`."""

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.specs.run_fields import MAX_ENVIRONMENT, MAX_NAME

ExperimentKind = Literal["sweep", "study"]
ExperimentState = Literal["running", "finished", "stopped"]


class Experiment(Base):
    """A sweep or a study. The reconciler of any process starts the runs that it needs next."""

    __tablename__ = "experiments"
    __table_args__ = (Index(None, "state", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    kind: Mapped[ExperimentKind] = mapped_column(String(20))
    name: Mapped[str] = mapped_column(String(MAX_NAME))
    definition: Mapped[str | None] = mapped_column(String(100), index=True)
    """Id of the papers' definition that it was created from; None for any other."""
    scale: Mapped[str | None] = mapped_column(String(20))
    """Scale of that definition."""
    spec: Mapped[dict[str, Any]]
    """The whole SweepSpec, or the whole StudySpec, presets resolved: a later version's definitions do not
    change it. Custom environments are described in `run` of a sweep, and in `custom` of a study."""
    state: Mapped[str] = mapped_column(String(20))
    """`running`, `finished` or `stopped`."""
    state_reason: Mapped[str] = mapped_column(Text, default="")
    ended_at: Mapped[datetime | None]
    looks: Mapped[int] = mapped_column(default=0)
    """How often the scores of all cells have been compared."""
    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """Number of changes."""


class ExperimentCell(Base):
    """A draw of an arm on an environment, and the run that fills it. The arms of a sweep are its
    configurations, all on one environment, and its draws are their seeds."""

    __tablename__ = "experiment_cells"

    experiment_id: Mapped[str] = mapped_column(
        ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    """Number of the cell, from 0."""
    arm: Mapped[int]
    """Number of the arm, from 0."""
    environment: Mapped[str] = mapped_column(String(MAX_ENVIRONMENT))
    draw: Mapped[int]
    """Number of the draw, from 0."""
    seed: Mapped[int] = mapped_column(BigInteger)
    """Seed of the cell's run, fixed when the cell was created."""
    settings: Mapped[dict[str, Any]]
    """What varies, by field path: the draw's random settings, or those of a sweep's configuration."""
    key: Mapped[str] = mapped_column(String(32), index=True)
    """Equal for runs that train alike: see `backend.experiments.cells.equal_runs`. Empty before the start of
    what uses no run of others."""
    started: Mapped[bool] = mapped_column(default=False)
    """Whether a run was started or found for it. A cell that is not, but has a run, waits for its turn to go
    on."""
    reused: Mapped[bool] = mapped_column(default=False)
    """Whether the run existed before, and belongs to another group."""
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"), index=True)
    """None before the start, and once the run has been deleted."""
    error: Mapped[str | None] = mapped_column(Text)
    """Why no run is started for it: none can be, or its configuration is eliminated."""
