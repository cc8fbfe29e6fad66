"""scores of checkpoints"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("checkpoints") as table:
        table.add_column(sa.Column("score", sa.Double(), nullable=True))
        table.add_column(sa.Column("best_return", sa.Double(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("checkpoints") as table:
        table.drop_column("best_return")
        table.drop_column("score")
