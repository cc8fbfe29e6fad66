"""studies and their cells"""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0105"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "studies",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=True),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("definition", sa.String(length=100), nullable=True),
        sa.Column("scale", sa.String(length=20), nullable=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_studies_created_by_users"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_studies")),
    )
    op.create_index(op.f("ix_studies_state_id"), "studies", ["state", "id"])
    op.create_index(op.f("ix_studies_definition"), "studies", ["definition"])

    op.create_table(
        "study_cells",
        sa.Column("study_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("environment", sa.String(length=200), nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("started", sa.Boolean(), nullable=False),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_study_cells_run_id_runs"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name=op.f("fk_study_cells_study_id_studies"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("study_id", "number", name=op.f("pk_study_cells")),
    )
    op.create_index(op.f("ix_study_cells_run_id"), "study_cells", ["run_id"])
    op.create_index(op.f("ix_study_cells_key"), "study_cells", ["key"])


def downgrade() -> None:
    op.drop_table("study_cells")
    op.drop_table("studies")
