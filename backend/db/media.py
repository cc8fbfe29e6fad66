"""Table `media`: histograms, images and tables that a run has logged."""

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base

MAX_CAPTION = 500


class Media(Base):
    """A histogram, an image or a table of one metric at one agent step.

    The bins of a histogram are in its row, because a chart reads hundreds of them together. An image or a
    table is a file of the artifact store.
    """

    __tablename__ = "media"
    __table_args__ = (
        Index(None, "run_id", "kind", "metric", "agent_steps"),
        Index(None, "run_id", "size_bytes"),
    )

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(10))
    """`histogram`, `image` or `table`."""
    metric: Mapped[str] = mapped_column(String(200))
    agent_steps: Mapped[int] = mapped_column(BigInteger)
    wall_time_s: Mapped[float]
    attempt: Mapped[int]
    """The attempt that wrote it."""
    superseded: Mapped[bool] = mapped_column(default=False)
    """Written after the checkpoint that a later attempt resumed from: kept, but never shown."""
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    width: Mapped[int | None]
    """Of an image in pixels; of a table its columns."""
    height: Mapped[int | None]
    """Of an image in pixels; of a table its rows."""
    caption: Mapped[str | None] = mapped_column(String(MAX_CAPTION))
    media_type: Mapped[str | None] = mapped_column(String(30))
    """Media type of the file."""
    file: Mapped[str | None] = mapped_column(String(200))
    """Name of the file in the artifact store; None for a histogram."""
    sha256: Mapped[str | None] = mapped_column(String(64))
    bins: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Edges, then counts, of a histogram: little-endian floats of 64 bits."""
