"""Table `evaluations`: scores from fresh starts, by the engine or on demand."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Evaluation(Base):
    """One evaluation of one checkpoint. `returns` is empty until it is done."""

    __tablename__ = "evaluations"
    __table_args__ = (Index(None, "run_id", "agent_steps"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    attempt: Mapped[int | None]
    """The attempt that evaluated itself; none when asked for over REST."""
    requested_at: Mapped[datetime]
    protocol: Mapped[str] = mapped_column(String(50))
    n_episodes: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    agent_steps: Mapped[int] = mapped_column(BigInteger)
    frames: Mapped[int] = mapped_column(BigInteger)
    wall_time_s: Mapped[float]
    checkpoint: Mapped[str] = mapped_column(String(200))
    """File name of the checkpoint that was scored."""
    returns: Mapped[list[float]]
    lengths_frames: Mapped[list[int]]
    mean_return: Mapped[float | None]
    superseded: Mapped[bool] = mapped_column(default=False)
