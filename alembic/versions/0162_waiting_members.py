"""which members of sweeps wait to be retried"""

import sqlalchemy as sa
from alembic import op

revision = "0162"
down_revision = "0161"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "sweep_members", sa.Column("waiting", sa.Boolean(), server_default=sa.false(), nullable=False)
    )


def downgrade() -> None:
    op.drop_column("sweep_members", "waiting")
