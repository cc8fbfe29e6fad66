"""Tables `series` and `series_chunks`: points in compressed columnar chunks, not a row a point."""

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class Series(Base):
    """One metric of one run from one source."""

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("run_id", "metric", "source"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    metric: Mapped[str] = mapped_column(String(200))
    source: Mapped[str] = mapped_column(String(100), default="")
    n_points: Mapped[int] = mapped_column(BigInteger, default=0)
    """Points that are not superseded."""
    last_value: Mapped[float | None]
    """None where the newest value is no finite number."""
    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The run's revision at which this series last changed."""
    cut_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The run's revision at which rows of this series were last superseded; 0 for never."""


class SeriesChunk(Base):
    """Up to `metrics.chunks.CHUNK_ROWS` points of one series.

    The rows that are not superseded lie in order of arrival: closed chunks of exactly `CHUNK_ROWS` rows,
    then a few smaller open ones. An open chunk is never changed, only replaced by a larger one.
    """

    __tablename__ = "series_chunks"
    __table_args__ = (Index(None, "series_id", "superseded", "first_row"),)

    # Small appends replace chunks all the time: 2^31 ids would be used up in a lab's year.
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    series_id: Mapped[int] = mapped_column(ForeignKey("series.id", ondelete="CASCADE"))
    superseded: Mapped[bool] = mapped_column(default=False)
    """Written by an attempt after the checkpoint a later attempt went on from: kept, never drawn."""
    first_row: Mapped[int] = mapped_column(BigInteger)
    """Row number in the series of this chunk's first row, superseded rows not counted."""
    n_rows: Mapped[int]
    closed: Mapped[bool] = mapped_column(default=False)
    """Full: no more rows will be added."""
    attempt: Mapped[int]
    """The newest attempt that has a row in this chunk."""
    min_agent_steps: Mapped[int] = mapped_column(BigInteger)
    max_agent_steps: Mapped[int] = mapped_column(BigInteger)
    revision: Mapped[int] = mapped_column(BigInteger)
    """The run's revision at which this chunk's newest row arrived."""
    # Before `columns`: SQLite reads a row's large values in order.
    rollup: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """`metrics.rollups` of a closed chunk."""
    columns: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    """`metrics.chunks` bytes."""
