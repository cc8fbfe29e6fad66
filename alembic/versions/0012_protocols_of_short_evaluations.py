"""the protocol of DQN's and Gorila's evaluations names their cap

Version 0.1.0 called every evaluation of an Atari agent `noop_starts`. DQN's and Gorila's episodes end after
their setting `evaluation_max_frames`, by default 18,000 frames: these are `noop_starts_5min`. Those with
108,000 keep the name, and any other cap N becomes `noop_starts_N_frames`. The setting stays in stored specs,
so that logs that are not recorded yet get the same names.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NAMES = {18_000: "noop_starts_5min", 108_000: "noop_starts"}
METRICS = ("mean_return", "best_kept_return")

RUNS = sa.table(
    "runs",
    *(sa.column(name, sa.String) for name in ("id", "algorithm", "environment")),
    sa.column("spec", sa.JSON),
)
EVALUATIONS = sa.table("evaluations", sa.column("run_id", sa.String), sa.column("protocol", sa.String))
SERIES = sa.table("series", sa.column("run_id", sa.String), sa.column("metric", sa.String))


def upgrade() -> None:
    for run, name in _short_evaluations():
        _rename(run, "noop_starts", name)


def downgrade() -> None:
    for run, name in _short_evaluations():
        _rename(run, name, "noop_starts")


def _short_evaluations() -> Iterator[tuple[str, str]]:
    """Runs whose evaluations had another name, and their current one."""
    found = sa.select(RUNS.c.id, RUNS.c.spec).where(
        RUNS.c.algorithm.in_(("dqn", "gorila_dqn")), RUNS.c.environment.like("ALE/%")
    )
    for run, spec in op.get_bind().execute(found).all():
        cap = spec["config"].get("evaluation_max_frames", 18_000)
        name = NAMES.get(cap, f"noop_starts_{cap}_frames")
        if name != "noop_starts":
            yield run, name


def _rename(run: str, old: str, new: str) -> None:
    rows: Any = EVALUATIONS.c
    op.execute(sa.update(EVALUATIONS).where(rows.run_id == run, rows.protocol == old).values(protocol=new))
    metrics = SERIES.c.metric
    for name in METRICS:
        taken = sa.select(metrics).where(SERIES.c.run_id == run, metrics == f"eval/{new}/{name}")
        if op.get_bind().execute(taken).first() is None:
            op.execute(
                sa.update(SERIES)
                .where(SERIES.c.run_id == run, metrics == f"eval/{old}/{name}")
                .values(metric=f"eval/{new}/{name}")
            )
