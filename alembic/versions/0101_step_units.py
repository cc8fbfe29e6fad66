"""the return metric and the step unit of runs, and the step unit of series"""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("return_metric", sa.String(length=200), nullable=True))
    for table in ("runs", "series"):
        unit = sa.Column("step_unit", sa.String(length=20), nullable=False, server_default="agent_steps")
        op.add_column(table, unit)


def downgrade() -> None:
    op.drop_column("series", "step_unit")
    op.drop_column("runs", "step_unit")
    op.drop_column("runs", "return_metric")
