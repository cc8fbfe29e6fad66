"""where the scripts of external runs came from, and what they have printed"""

import sqlalchemy as sa
from alembic import op

revision = "0172"
down_revision = "0162"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "script_processes",
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("source", sa.String(length=26), nullable=False),
        sa.Column("provenance", sa.JSON(), nullable=False),
        sa.Column("diff", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_script_processes_run_id_runs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "source", name=op.f("pk_script_processes")),
    )


def downgrade() -> None:
    op.drop_table("script_processes")
