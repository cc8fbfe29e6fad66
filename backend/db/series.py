"""Tables `series` and `series_chunks`: points in compressed columnar chunks."""

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base

NEW_SERIES = "callboard_new_series"
"""In a session's `info`: how many series its transaction has created."""


class Series(Base):
    """One metric of one run from one source."""

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("run_id", "metric", "source"), Index(None, "metric", "source"))

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    metric: Mapped[str] = mapped_column(String(200))
    source: Mapped[str] = mapped_column(String(100), default="")
    step_unit: Mapped[str] = mapped_column(String(20), default="agent_steps", server_default="agent_steps")
    """What the column `agent_steps` of its points counts: `agent_steps`, `iterations` or `seconds`."""
    n_points: Mapped[int] = mapped_column(BigInteger, default=0)
    """Points that are not superseded."""
    last_value: Mapped[float | None]
    """None if the latest value is not finite."""
    n_finite: Mapped[int] = mapped_column(BigInteger, default=0)
    """Points with a finite value, which the next three describe; they are None without any."""
    mean_value: Mapped[float | None]
    min_value: Mapped[float | None]
    max_value: Mapped[float | None]
    revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The run's revision at which this series last changed."""
    cut_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The run's revision at which rows of this series were last superseded; 0 if never."""
    cut_agent_steps: Mapped[int | None] = mapped_column(BigInteger)
    """The agent steps above which they were; -1 from the beginning, None if never."""


class SeriesChunk(Base):
    """Up to `metrics.chunks.CHUNK_ROWS` points of one series.

    Rows that are not superseded are stored in order of arrival: closed chunks of exactly `CHUNK_ROWS` rows,
    then a few smaller open ones. An open chunk is never changed, only replaced by a larger one.
    """

    __tablename__ = "series_chunks"
    __table_args__ = (Index(None, "series_id", "superseded", "first_row"),)

    # Small appends replace chunks all the time: a busy lab would use up 2^31 ids in a year.
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    series_id: Mapped[int] = mapped_column(ForeignKey("series.id", ondelete="CASCADE"))
    superseded: Mapped[bool] = mapped_column(default=False)
    """Written after the checkpoint that a later attempt resumed from: kept, but never shown."""
    first_row: Mapped[int] = mapped_column(BigInteger)
    """Row number in the series of this chunk's first row, without superseded rows."""
    n_rows: Mapped[int]
    closed: Mapped[bool] = mapped_column(default=False)
    """Full: no rows will be added."""
    attempt: Mapped[int]
    """The latest attempt with a row in this chunk."""
    min_agent_steps: Mapped[int] = mapped_column(BigInteger)
    max_agent_steps: Mapped[int] = mapped_column(BigInteger)
    revision: Mapped[int] = mapped_column(BigInteger)
    """The run's revision at which this chunk's latest row arrived."""
    # Before `columns`: SQLite reads a row's large values in order.
    rollup: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Bytes of `metrics.rollups`, of a closed chunk."""
    columns: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    """Bytes of `metrics.chunks`."""
