"""the protocol sticky_actions is sticky_actions_5min in evaluations, series, runs and sweeps"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0106"
down_revision = "0103"
branch_labels = None
depends_on = None

_OLD, _NEW = "sticky_actions", "sticky_actions_5min"
_VARIANTS = ("", "_greedy")
_CONFIG = "config.evaluation_protocol"

_runs = sa.table(
    "runs",
    sa.column("id", sa.String),
    sa.column("origin", sa.String),
    sa.column("spec", sa.JSON().with_variant(JSONB(), "postgresql")),
)
_sweeps = sa.table("sweeps", sa.column("id", sa.String), sa.column("spec", sa.JSON))
_configurations = sa.table(
    "sweep_configurations",
    sa.column("sweep_id", sa.String),
    sa.column("number", sa.Integer),
    sa.column("settings", sa.JSON),
)
_evaluations = sa.table("evaluations", sa.column("protocol", sa.String))
_series = sa.table("series", sa.column("run_id", sa.String), sa.column("metric", sa.String))


def upgrade() -> None:
    _rename({_OLD + variant: _NEW + variant for variant in _VARIANTS})


def downgrade() -> None:
    _rename({_NEW + variant: _OLD + variant for variant in _VARIANTS})


def _rename(names: dict[str, str]) -> None:
    connection = op.get_bind()
    of_engine = sa.select(_runs.c.id).where(_runs.c.origin == "callboard")
    for old, new in names.items():
        evaluated = _evaluations.c.protocol == old
        connection.execute(_evaluations.update().where(evaluated).values(protocol=new))
        prefix = f"eval/{old}/"
        connection.execute(
            _series.update()
            .where(_series.c.metric.startswith(prefix, autoescape=True), _series.c.run_id.in_(of_engine))
            .values(metric=sa.func.replace(_series.c.metric, prefix, f"eval/{new}/"))
        )

    def renamed(value: Any) -> Any:
        return names.get(value, value) if isinstance(value, str) else value

    def run_of(spec: Any) -> None:
        config = spec.get("config")
        if isinstance(config, dict) and "evaluation_protocol" in config:
            config["evaluation_protocol"] = renamed(config["evaluation_protocol"])

    def sweep_of(spec: Any) -> None:
        spec["protocol"] = renamed(spec.get("protocol"))
        run_of(spec["run"])
        dimension = spec["space"].get(_CONFIG)
        if dimension and dimension.get("values"):
            dimension["values"] = [renamed(value) for value in dimension["values"]]

    def settings_of(settings: Any) -> None:
        if _CONFIG in settings:
            settings[_CONFIG] = renamed(settings[_CONFIG])

    _rewrite(_runs, "spec", run_of)
    _rewrite(_sweeps, "spec", sweep_of)
    _rewrite(_configurations, "settings", settings_of)


def _rewrite(table: sa.TableClause, name: str, change: Callable[[Any], None]) -> None:
    """Change a JSON column of the rows that choose such a protocol."""
    connection = op.get_bind()
    column = table.c[name]
    keys = [column for column in table.c if column.name in ("id", "sweep_id", "number")]
    rows = sa.select(*keys, column).where(sa.cast(column, sa.Text).contains(_OLD))
    if table is _runs:  # most runs have the setting sticky_actions
        text = sa.func.replace(sa.cast(column, sa.Text), " ", "")
        rows = rows.where(text.contains(f'"evaluation_protocol":"{_OLD}'))
    for *key, value in connection.execute(rows).all():
        change(value)
        row = sa.and_(*(column == part for column, part in zip(keys, key, strict=True)))
        connection.execute(table.update().where(row).values({name: value}))
