"""start sets, and jobs that belong to no run"""

import sqlalchemy as sa
from alembic import op

revision = "0114"
down_revision = "0104"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "start_sets",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=True),
        sa.Column("name", sa.String(length=24), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("environment", sa.String(length=200), nullable=False),
        sa.Column("source", sa.String(length=20), nullable=False),
        sa.Column("origin", sa.String(length=200), nullable=False),
        sa.Column("n_points", sa.Integer(), nullable=False),
        sa.Column("n_games", sa.Integer(), nullable=False),
        sa.Column("n_people", sa.Integer(), nullable=False),
        sa.Column("n_frames", sa.BigInteger(), nullable=True),
        sa.Column("rom_md5", sa.String(length=32), nullable=True),
        sa.Column("ale_py", sa.String(length=50), nullable=True),
        sa.Column("mode", sa.Integer(), nullable=True),
        sa.Column("difficulty", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("document", sa.LargeBinary(), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("states", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"],
            ["users.id"],
            name=op.f("fk_start_sets_created_by_users"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_start_sets")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_start_sets_name_version")),
    )
    with op.batch_alter_table("jobs") as jobs:
        jobs.alter_column("run_id", existing_type=sa.String(length=26), nullable=True)


def downgrade() -> None:
    op.execute("DELETE FROM jobs WHERE run_id IS NULL")
    with op.batch_alter_table("jobs") as jobs:
        jobs.alter_column("run_id", existing_type=sa.String(length=26), nullable=False)
    op.drop_table("start_sets")
