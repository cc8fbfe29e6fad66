"""custom environments of hosts"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("hosts") as table:
        table.add_column(sa.Column("own_environments", sa.JSON(), nullable=False, server_default="[]"))
    with op.batch_alter_table("hosts") as table:
        table.alter_column("own_environments", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("hosts") as table:
        table.drop_column("own_environments")
