"""saliency maps of recorded decisions"""

import sqlalchemy as sa
from alembic import op

revision = "0152"
down_revision = "0151"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "saliency_maps",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("episode_id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decision", sa.Integer(), nullable=False),
        sa.Column("policy_run_id", sa.String(length=26), nullable=False),
        sa.Column("checkpoint", sa.String(length=200), nullable=False),
        sa.Column("checkpoint_id", sa.String(length=26), nullable=False),
        sa.Column("checkpoint_agent_steps", sa.BigInteger(), nullable=False),
        sa.Column("action_values", sa.Boolean(), nullable=False),
        sa.Column("map", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["episode_id"],
            ["episodes.id"],
            name=op.f("fk_saliency_maps_episode_id_episodes"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_saliency_maps_run_id_runs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saliency_maps")),
        sa.UniqueConstraint(
            "episode_id",
            "decision",
            "checkpoint_id",
            name=op.f("uq_saliency_maps_episode_id_decision_checkpoint_id"),
        ),
    )
    op.create_index(op.f("ix_saliency_maps_policy_run_id"), "saliency_maps", ["policy_run_id"])
    op.create_index(op.f("ix_saliency_maps_run_id"), "saliency_maps", ["run_id"])


def downgrade() -> None:
    op.drop_table("saliency_maps")
