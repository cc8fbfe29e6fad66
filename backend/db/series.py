"""Tables `series` and `series_chunks`: points in compressed columnar chunks, not a row a point."""

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, UniqueConstraint
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
    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The run's revision at which this series last changed."""


class SeriesChunk(Base):
    """Up to `metrics.chunks.CHUNK_ROWS` points of one series, written by one attempt."""

    __tablename__ = "series_chunks"
    __table_args__ = (
        UniqueConstraint("series_id", "ordinal"),
        Index(None, "series_id", "revision"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    series_id: Mapped[int] = mapped_column(ForeignKey("series.id", ondelete="CASCADE"))
    ordinal: Mapped[int]
    """Order of the chunks within the series; rows keep their order of arrival."""
    attempt: Mapped[int]
    first_row: Mapped[int] = mapped_column(BigInteger)
    """Row number in the series of this chunk's first row, superseded rows not counted."""
    n_rows: Mapped[int]
    min_agent_steps: Mapped[int] = mapped_column(BigInteger)
    max_agent_steps: Mapped[int] = mapped_column(BigInteger)
    superseded: Mapped[bool] = mapped_column(default=False)
    """Written by an attempt after the checkpoint a later attempt went on from: kept, never drawn."""
    closed: Mapped[bool] = mapped_column(default=False)
    """No more rows will be added."""
    revision: Mapped[int] = mapped_column(BigInteger)
    """The run's revision at which this chunk last changed."""
    columns: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    rollup: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Min, max, mean, last in power-of-two row buckets, once closed."""
