"""checksums of replays and videos, and limits of failed logins"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

COLUMNS = ("replay_sha256", "video_sha256", "observations_sha256")


def upgrade() -> None:
    with op.batch_alter_table("episodes") as table:
        for column in COLUMNS:
            table.add_column(sa.Column(column, sa.String(64), nullable=True))
    op.create_table(
        "login_limits",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("blocked_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_login_limits")),
    )
    op.create_index(op.f("ix_login_limits_expires_at"), "login_limits", ["expires_at"])


def downgrade() -> None:
    op.drop_table("login_limits")
    with op.batch_alter_table("episodes") as table:
        for column in COLUMNS:
            table.drop_column(column)
