"""statistics of series, and the time at which a run was deleted

Lists of runs are filtered and sorted by the mean, minimum and maximum of a metric. A deleted run can be
restored until it is purged.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op

from backend.metrics.chunks import decode

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STATISTICS = ("mean_value", "min_value", "max_value")
IDS_A_STATEMENT = 500
ROWS_AT_A_TIME = 100
"""Of chunks, which hold some 100 kB each."""

SERIES = sa.table("series", sa.column("id", sa.Integer), sa.column("n_finite", sa.BigInteger))
CHUNKS = sa.table(
    "series_chunks",
    sa.column("series_id", sa.Integer),
    sa.column("superseded", sa.Boolean),
    sa.column("first_row", sa.BigInteger),
    sa.column("columns", sa.LargeBinary),
)


def upgrade() -> None:
    with op.batch_alter_table("series") as table:
        table.add_column(sa.Column("n_finite", sa.BigInteger(), nullable=False, server_default="0"))
        for name in STATISTICS:
            table.add_column(sa.Column(name, sa.Double(), nullable=True))
        table.create_index(op.f("ix_series_metric_source"), ["metric", "source"])
    with op.batch_alter_table("series") as table:
        table.alter_column("n_finite", server_default=None)
    with op.batch_alter_table("runs") as table:
        table.add_column(sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True))
    _fill()


def downgrade() -> None:
    # Runs that were deleted and are not purged yet appear again.
    with op.batch_alter_table("runs") as table:
        table.drop_column("deleted_at")
    with op.batch_alter_table("series") as table:
        table.drop_index(op.f("ix_series_metric_source"))
        for name in ("n_finite", *STATISTICS):
            table.drop_column(name)


def _fill() -> None:
    """Compute the statistics of the recorded points."""
    connection = op.get_bind()
    ids = connection.scalars(sa.select(SERIES.c.id)).all()
    statement = sa.text(
        "UPDATE series SET n_finite = :n, mean_value = :mean, min_value = :low, max_value = :high "
        "WHERE id = :id"
    )
    for first in range(0, len(ids), IDS_A_STATEMENT):
        rows = list(_statistics(connection, ids[first : first + IDS_A_STATEMENT]))
        if rows:
            connection.execute(statement, rows)


def _statistics(connection: sa.Connection, ids: Sequence[int]) -> Iterator[dict[str, Any]]:
    chunks = sa.select(CHUNKS.c.series_id, CHUNKS.c.columns).where(
        CHUNKS.c.series_id.in_(ids), CHUNKS.c.superseded.is_(False)
    )
    found: dict[int, list[Any]] = {}
    for series_id, columns in connection.execute(chunks, execution_options={"yield_per": ROWS_AT_A_TIME}):
        values = decode(columns, ("value",))["value"]
        finite = values[np.isfinite(values)]
        if len(finite):
            found.setdefault(series_id, []).append((len(finite), finite.mean(), finite.min(), finite.max()))
    for series_id, parts in found.items():
        counts, means, lows, highs = map(np.array, zip(*parts, strict=True))
        yield {
            "id": series_id,
            "n": int(counts.sum()),
            "mean": float((means * (counts / counts.sum())).sum()),
            "low": float(lows.min()),
            "high": float(highs.max()),
        }
