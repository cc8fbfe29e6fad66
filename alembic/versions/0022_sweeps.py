"""sweeps"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sweeps",
        sa.Column("id", sa.String(26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(26), nullable=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("looks", sa.Integer(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name="fk_sweeps_created_by_users", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sweeps"),
    )
    op.create_index("ix_sweeps_state_id", "sweeps", ["state", "id"])
    op.create_table(
        "sweep_configurations",
        sa.Column("sweep_id", sa.String(26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("eliminated", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweeps.id"], name="fk_sweep_configurations_sweep_id_sweeps", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sweep_id", "number", name="pk_sweep_configurations"),
    )
    op.create_table(
        "sweep_members",
        sa.Column("sweep_id", sa.String(26), nullable=False),
        sa.Column("configuration", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(26), nullable=True),
        sa.ForeignKeyConstraint(
            ["sweep_id", "configuration"],
            ["sweep_configurations.sweep_id", "sweep_configurations.number"],
            name="fk_sweep_members_sweep_id_sweep_configurations",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_sweep_members_run_id_runs", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("sweep_id", "configuration", "seed", name="pk_sweep_members"),
    )
    op.create_index("ix_sweep_members_run_id", "sweep_members", ["run_id"])


def downgrade() -> None:
    op.drop_index("ix_sweep_members_run_id", "sweep_members")
    op.drop_table("sweep_members")
    op.drop_table("sweep_configurations")
    op.drop_index("ix_sweeps_state_id", "sweeps")
    op.drop_table("sweeps")
