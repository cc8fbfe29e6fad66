"""notes at a step of a run"""

import sqlalchemy as sa
from alembic import op

revision = "0141"
down_revision = "0131"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "step_notes",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("agent_steps", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.String(length=500), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_step_notes_created_by_users"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_step_notes_run_id_runs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step_notes")),
    )
    op.create_index(op.f("ix_step_notes_run_id_agent_steps"), "step_notes", ["run_id", "agent_steps"])


def downgrade() -> None:
    op.drop_table("step_notes")
