"""Tables `studies` and `study_cells`."""

from datetime import datetime
from typing import Any, get_args

from pydantic import ValidationError
from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, event
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.orm.attributes import set_committed_value

from backend.db.base import Base
from backend.db.checked_json import DAMAGED, UnreadableSpec, refuse_change
from backend.specs.run_fields import MAX_ENVIRONMENT, MAX_NAME
from backend.specs.study import StudySpec, StudyState


class Study(Base):
    """A study. The reconciler of any process starts the runs that it needs next."""

    __tablename__ = "studies"
    __table_args__ = (Index(None, "state", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    name: Mapped[str] = mapped_column(String(MAX_NAME))
    definition: Mapped[str | None] = mapped_column(String(100), index=True)
    """Id of the papers' definition that it was created from; None for a custom study."""
    scale: Mapped[str | None] = mapped_column(String(20))
    """Scale of that definition."""
    spec: Mapped[dict[str, Any]]
    """The whole StudySpec, presets resolved: a later version's definitions do not change it."""
    state: Mapped[str] = mapped_column(String(20))
    """`running`, `finished` or `stopped`."""
    state_reason: Mapped[str] = mapped_column(Text, default="")
    ended_at: Mapped[datetime | None]
    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """Number of changes."""


def study_spec(stored: dict[str, Any]) -> StudySpec:
    """The specification of a stored study.

    Raises:
        ValidationError: it is damaged.
    """
    return StudySpec.model_validate({name: value for name, value in stored.items() if name != "custom"})


def is_whole_study(spec: Any) -> bool:
    """Whether a stored specification of a study can be read."""
    try:
        study_spec(spec)
    except (AttributeError, ValidationError):
        return False
    return isinstance(spec.get("custom") or {}, dict)


@event.listens_for(Study, "load")
@event.listens_for(Study, "refresh")
def _replace_damaged(study: Study, *context: Any) -> None:
    """Show a damaged row as a stopped study of no algorithm: it must not break a list, and starts nothing."""
    loaded = study.__dict__
    is_whole = "spec" not in loaded or is_whole_study(loaded["spec"])
    if not is_whole:
        parts = {"arms": [{"label": "unknown", "algorithm": ""}], "environments": [""], "draws": {"n": 1}}
        shown: dict[str, Any] = {"name": loaded.get("name"), "notes": "", "custom": {}} | parts
        set_committed_value(study, "spec", UnreadableSpec(shown, DAMAGED))
    if not is_whole or ("state" in loaded and loaded["state"] not in get_args(StudyState)):
        set_committed_value(study, "state", "stopped")
        set_committed_value(study, "state_reason", DAMAGED)


event.listen(Study.spec, "set", refuse_change)


class StudyCell(Base):
    """A draw of an arm on an environment, and the run that fills it."""

    __tablename__ = "study_cells"

    study_id: Mapped[str] = mapped_column(ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True)
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
    """The draw's random settings by field path."""
    key: Mapped[str] = mapped_column(String(32), index=True)
    """Equal for runs that train alike: see `backend.experiments.cells.equal_runs`."""
    started: Mapped[bool] = mapped_column(default=False)
    """Whether a run was started or found for it."""
    reused: Mapped[bool] = mapped_column(default=False)
    """Whether the run existed before, and belongs to another group."""
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"), index=True)
    """None before the start, and once the run has been deleted."""
    error: Mapped[str | None] = mapped_column(Text)
    """Why no run can be started for it."""
