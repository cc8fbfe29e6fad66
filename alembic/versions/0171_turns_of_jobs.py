"""when jobs were claimed, and how long they took"""

import sqlalchemy as sa
from alembic import op

revision = "0171"
down_revision = "0162"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("took_s", sa.Double(), server_default=sa.text("0"), nullable=False))
    op.create_index(op.f("ix_jobs_claimed_at"), "jobs", ["claimed_at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_jobs_claimed_at"), "jobs")
    op.drop_column("jobs", "took_s")
    op.drop_column("jobs", "claimed_at")
