"""Table `episodes`: episodes with a recorded replay."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Episode(Base):
    """One recorded episode; its replay and video are artifacts."""

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
    """File name of the replay in the artifact store."""
    replay_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the replay, in hexadecimal; None: any content is accepted."""
    video: Mapped[str | None] = mapped_column(String(200))
    """File name of the rendered video; None until it is rendered."""
    video_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the video."""
    observations_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the video of the network input; None if there is none."""
    states_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the emulator states of a long Atari episode; None if there are none."""
    replay_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Size of the replay."""
    video_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Size of the video, of that of the network input, and of the emulator states; None without a video."""
    video_rendered_at: Mapped[datetime | None]
    thumbnail_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the thumbnail; None until it is rendered."""
    thumbnail_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Size of the thumbnail; None without one."""
    superseded: Mapped[bool] = mapped_column(default=False)
    removed: Mapped[bool] = mapped_column(default=False)
    """Whether retention has removed it: no list shows it, and its row is deleted with its files."""
