"""Tables `experiments` and `experiment_cells`."""

from datetime import datetime
from typing import Any, get_args

from pydantic import ValidationError
from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, event
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.orm.attributes import set_committed_value

from backend.db.base import Base
from backend.db.checked_json import DAMAGED, UnreadableSpec, refuse_change
from backend.specs.run_fields import MAX_ENVIRONMENT, MAX_NAME
from backend.specs.study import StudySpec
from backend.specs.sweep import ExperimentState, SweepSpec


class Experiment(Base):
    """A sweep or a study. The reconciler of any process starts the runs that it needs next."""

    __tablename__ = "experiments"
    __table_args__ = (Index(None, "state", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    kind: Mapped[str] = mapped_column(String(20))
    """`sweep` or `study`."""
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


def study_spec(stored: dict[str, Any]) -> StudySpec:
    """The specification of a stored study.

    Raises:
        ValidationError: it is damaged.
    """
    return StudySpec.model_validate({name: value for name, value in stored.items() if name != "custom"})


def is_whole_experiment(kind: str, spec: Any) -> bool:
    """Whether a stored specification of an experiment can be read."""
    try:
        if kind == "sweep":
            SweepSpec.model_validate(spec)
            return True
        study_spec(spec)
    except (AttributeError, ValidationError):
        return False
    return isinstance(spec.get("custom") or {}, dict)


_STAND_INS: dict[str, dict[str, Any]] = {
    "sweep": {"run": {"algorithm": "", "environment": ""}, "space": {"config.unknown": {"values": [None]}}},
    "study": {
        "arms": [{"label": "unknown", "algorithm": ""}],
        "environments": [""],
        "draws": {"n": 1},
        "custom": {},
    },
}


@event.listens_for(Experiment, "load")
@event.listens_for(Experiment, "refresh")
def _replace_damaged(experiment: Experiment, *context: Any) -> None:
    """Show a damaged row as stopped and of no algorithm: it must not break a list, and starts nothing."""
    loaded = experiment.__dict__
    is_whole = "spec" not in loaded or is_whole_experiment(loaded["kind"], loaded["spec"])
    if not is_whole:
        spec = {"name": loaded.get("name"), "notes": ""} | _STAND_INS[loaded["kind"]]
        set_committed_value(experiment, "spec", UnreadableSpec(spec, DAMAGED))
    if not is_whole or ("state" in loaded and loaded["state"] not in get_args(ExperimentState)):
        set_committed_value(experiment, "state", "stopped")
        set_committed_value(experiment, "state_reason", DAMAGED)


event.listen(Experiment.spec, "set", refuse_change)


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
