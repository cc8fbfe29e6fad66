"""Tables `sweeps`, `sweep_configurations` and `sweep_members`."""

from datetime import datetime
from typing import Any, get_args

from pydantic import ValidationError
from sqlalchemy import BigInteger, ForeignKey, ForeignKeyConstraint, Index, String, Text, event, false
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.orm.attributes import set_committed_value

from backend.db.base import Base
from backend.db.checked_json import DAMAGED, UnreadableSpec, refuse_change
from backend.specs.run_fields import MAX_NAME
from backend.specs.sweep import SweepSpec, SweepState


class Sweep(Base):
    """A sweep. The reconciler of any process starts the runs that it needs next."""

    __tablename__ = "sweeps"
    __table_args__ = (Index(None, "state", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    name: Mapped[str] = mapped_column(String(MAX_NAME))
    spec: Mapped[dict[str, Any]]
    """The whole SweepSpec; a custom environment's description is in its `run`."""
    state: Mapped[str] = mapped_column(String(20))
    """`running`, `finished` or `stopped`."""
    state_reason: Mapped[str] = mapped_column(Text, default="")
    ended_at: Mapped[datetime | None]
    looks: Mapped[int] = mapped_column(default=0)
    """How often its configurations have been compared."""
    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """Number of changes."""


def is_whole_sweep(spec: Any) -> bool:
    """Whether a stored specification of a sweep can be read."""
    try:
        SweepSpec.model_validate(spec)
    except ValidationError:
        return False
    return True


@event.listens_for(Sweep, "load")
@event.listens_for(Sweep, "refresh")
def _replace_damaged(sweep: Sweep, *context: Any) -> None:
    """Show a damaged row as a stopped sweep of no algorithm: it must not break a list, and starts nothing."""
    loaded = sweep.__dict__
    is_whole = "spec" not in loaded or is_whole_sweep(loaded["spec"])
    if not is_whole:
        parts = {
            "run": {"algorithm": "", "environment": ""},
            "space": {"config.unknown": {"values": [None]}},
        }
        shown = {"name": loaded.get("name"), "notes": ""} | parts
        set_committed_value(sweep, "spec", UnreadableSpec(shown, DAMAGED))
    if not is_whole or ("state" in loaded and loaded["state"] not in get_args(SweepState)):
        set_committed_value(sweep, "state", "stopped")
        set_committed_value(sweep, "state_reason", DAMAGED)


event.listen(Sweep.spec, "set", refuse_change)


class SweepConfiguration(Base):
    """One configuration of a sweep."""

    __tablename__ = "sweep_configurations"

    sweep_id: Mapped[str] = mapped_column(ForeignKey("sweeps.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """Number of the configuration, from 0."""
    settings: Mapped[dict[str, Any]]
    """The configuration's values by field path."""
    eliminated: Mapped[str | None] = mapped_column(Text)
    """Why it gets no further seed; None while it may."""


class SweepMember(Base):
    """A seed of a configuration, and the run that was started for it."""

    __tablename__ = "sweep_members"
    __table_args__ = (
        ForeignKeyConstraint(
            ["sweep_id", "configuration"],
            ["sweep_configurations.sweep_id", "sweep_configurations.number"],
            ondelete="CASCADE",
        ),
    )

    sweep_id: Mapped[str] = mapped_column(String(26), primary_key=True)
    configuration: Mapped[int] = mapped_column(primary_key=True)
    seed: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"), index=True)
    """None once the run has been deleted."""
    waiting: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether its run failed or was stopped, and is queued again in its turn."""
