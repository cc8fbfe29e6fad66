"""whether a run is the demo run"""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0106"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("demo", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("runs", "demo")
