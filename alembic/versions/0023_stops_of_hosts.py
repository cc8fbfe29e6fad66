"""stops of hosts, and which worker has a host's name"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("hosts") as table:
        table.add_column(sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("worker_id", sa.String(32), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("hosts") as table:
        table.drop_column("worker_id")
        table.drop_column("stopped_at")
