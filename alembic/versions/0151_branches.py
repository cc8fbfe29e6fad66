"""continuations of recorded episodes"""

import sqlalchemy as sa
from alembic import op

revision = "0151"
down_revision = "0142"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "branches",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("episode_id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=True),
        sa.Column("decision", sa.Integer(), nullable=False),
        sa.Column("n_continuations", sa.Integer(), nullable=False),
        sa.Column("horizon", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("first_action", sa.Integer(), nullable=True),
        sa.Column("policy_run_id", sa.String(length=26), nullable=False),
        sa.Column("checkpoint", sa.String(length=200), nullable=False),
        sa.Column("checkpoint_id", sa.String(length=26), nullable=False),
        sa.Column("checkpoint_agent_steps", sa.BigInteger(), nullable=False),
        sa.Column("action_values", sa.Boolean(), nullable=False),
        sa.Column("gamma", sa.Double(), nullable=False),
        sa.Column("reward_clip", sa.Double(), nullable=True),
        sa.Column("episode_outcome", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.JSON(), nullable=True),
        sa.Column("rewards", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_branches_created_by_users"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["episode_id"],
            ["episodes.id"],
            name=op.f("fk_branches_episode_id_episodes"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_branches_run_id_runs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_branches")),
    )
    op.create_index(op.f("ix_branches_episode_id_id"), "branches", ["episode_id", "id"])
    op.create_index(op.f("ix_branches_policy_run_id"), "branches", ["policy_run_id"])
    op.create_index(op.f("ix_branches_run_id"), "branches", ["run_id"])


def downgrade() -> None:
    op.drop_table("branches")
