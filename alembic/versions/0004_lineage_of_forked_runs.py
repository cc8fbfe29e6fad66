"""lineage of forked runs"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("parent_id", sa.String(length=26), nullable=True))
        batch_op.add_column(sa.Column("forked_at_agent_steps", sa.BigInteger(), nullable=True))
        batch_op.create_index(batch_op.f("ix_runs_parent_id"), ["parent_id"], unique=False)
        batch_op.create_foreign_key(
            batch_op.f("fk_runs_parent_id_runs"), "runs", ["parent_id"], ["id"], ondelete="SET NULL"
        )


def downgrade() -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f("fk_runs_parent_id_runs"), type_="foreignkey")
        batch_op.drop_index(batch_op.f("ix_runs_parent_id"))
        batch_op.drop_column("forked_at_agent_steps")
        batch_op.drop_column("parent_id")
