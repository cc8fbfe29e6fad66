"""Table `evaluations`: scores of checkpoints, by the engine or on request."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Evaluation(Base):
    """One evaluation of one checkpoint. `returns` is empty until it has finished."""

    __tablename__ = "evaluations"
    __table_args__ = (Index(None, "run_id", "agent_steps"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    attempt: Mapped[int | None]
    """The attempt whose engine evaluated; None if requested over REST."""
    requested_at: Mapped[datetime]
    protocol: Mapped[str] = mapped_column(String(50))
    n_episodes: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    agent_steps: Mapped[int] = mapped_column(BigInteger)
    frames: Mapped[int] = mapped_column(BigInteger)
    wall_time_s: Mapped[float]
    checkpoint: Mapped[str] = mapped_column(String(200))
    """File name of the evaluated checkpoint."""
    returns: Mapped[list[float]]
    lengths_frames: Mapped[list[int]]
    mean_return: Mapped[float | None]
    superseded: Mapped[bool] = mapped_column(default=False)
