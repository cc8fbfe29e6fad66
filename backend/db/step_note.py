"""Table `step_notes`: what people have noted at a step of a run's training."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.specs.run_fields import MAX_STEP_NOTE


class StepNote(Base):
    """A note at a step of a run's training; those about a run as a whole are in `Run.notes`."""

    __tablename__ = "step_notes"
    __table_args__ = (Index(None, "run_id", "agent_steps"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    agent_steps: Mapped[int] = mapped_column(BigInteger)
    text: Mapped[str] = mapped_column(String(MAX_STEP_NOTE))
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
