"""Table `videos`: videos that the scripts of external runs have sent."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Video(Base):
    """A video that a script has sent; a worker encodes it, after which what was sent is deleted."""

    __tablename__ = "videos"
    __table_args__ = (Index(None, "run_id", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    received_at: Mapped[datetime]
    agent_steps: Mapped[int] = mapped_column(BigInteger)
    wall_time_s: Mapped[float]
    form: Mapped[str] = mapped_column(String(10))
    """`file`: a video file; `frames`: an array of frames."""
    fps: Mapped[float | None]
    """Frames per second, if the form is `frames`."""
    upload: Mapped[str] = mapped_column(String(26))
    """Id of the upload."""
    sent: Mapped[str | None] = mapped_column(String(200))
    """File name of the uploaded file in the artifact store; None once it is encoded or found unusable."""
    sent_sha256: Mapped[str | None] = mapped_column(String(64))
    sent_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    video: Mapped[str | None] = mapped_column(String(200))
    """File name of the encoded video; None until it is encoded."""
    video_sha256: Mapped[str | None] = mapped_column(String(64))
    video_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    n_frames: Mapped[int | None]
    duration_s: Mapped[float | None]
    thumbnail_sha256: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of the thumbnail; None, as its size is, until the thumbnail is taken."""
    thumbnail_bytes: Mapped[int | None] = mapped_column(BigInteger)
    error: Mapped[str | None] = mapped_column(Text)
    """Why the uploaded file cannot be encoded."""
