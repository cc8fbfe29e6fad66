"""Table `episodes`: episodes whose replay was kept."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Episode(Base):
    """One kept episode; its replay and video are artifacts."""

    __tablename__ = "episodes"
    __table_args__ = (Index(None, "run_id", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    kind: Mapped[str] = mapped_column(String(20))
    source: Mapped[str] = mapped_column(String(100), default="")
    recorded_at: Mapped[datetime]
    agent_steps: Mapped[int] = mapped_column(BigInteger)
    frames: Mapped[int] = mapped_column(BigInteger)
    wall_time_s: Mapped[float]
    seed: Mapped[int] = mapped_column(BigInteger)
    episode_return: Mapped[float]
    length_steps: Mapped[int]
    length_frames: Mapped[int]
    replay: Mapped[str] = mapped_column(String(200))
    """File name of the replay among the run's artifacts."""
    video: Mapped[str | None] = mapped_column(String(200))
    """File name of the rendered video, once there is one."""
    superseded: Mapped[bool] = mapped_column(default=False)
