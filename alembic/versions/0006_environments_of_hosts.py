"""environments of hosts"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("hosts") as table:
        table.add_column(sa.Column("environments", sa.JSON(), nullable=False, server_default="[]"))
    with op.batch_alter_table("hosts") as table:
        table.alter_column("environments", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("hosts") as table:
        table.drop_column("environments")
