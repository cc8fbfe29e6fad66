"""deaths of worker or host, counted apart from a run's own attempts"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs") as table:
        table.add_column(sa.Column("host_deaths", sa.Integer(), nullable=False, server_default="0"))
    with op.batch_alter_table("runs") as table:
        table.alter_column("host_deaths", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("runs") as table:
        table.drop_column("host_deaths")
