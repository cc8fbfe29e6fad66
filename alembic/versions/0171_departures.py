"""how runs depart from their specifications, and up to where their scores are early"""

import sqlalchemy as sa
from alembic import op

revision = "0171"
down_revision = "0162"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("early_agent_steps", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("departures", sa.JSON(), server_default="{}", nullable=False))


def downgrade() -> None:
    op.drop_column("runs", "departures")
    op.drop_column("runs", "early_agent_steps")
