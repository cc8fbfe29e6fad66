"""deleted runs"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("deleted_runs", sa.Column("id", sa.String(26), primary_key=True))


def downgrade() -> None:
    op.drop_table("deleted_runs")
