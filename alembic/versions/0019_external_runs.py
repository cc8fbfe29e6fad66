"""external runs: origins of runs, what their scripts have sent, and tokens that only write their own ones"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs") as table:
        table.add_column(sa.Column("origin", sa.String(20), nullable=False, server_default="callboard"))
        table.add_column(sa.Column("token_id", sa.String(26), nullable=True))
    with op.batch_alter_table("runs") as table:
        table.alter_column("origin", server_default=None)
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column("scope", sa.String(20), nullable=True))
    op.create_table(
        "external_sources",
        sa.Column("run_id", sa.String(26), nullable=False),
        sa.Column("source", sa.String(26), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_external_sources_run_id_runs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "source", name="pk_external_sources"),
    )


def downgrade() -> None:
    op.drop_table("external_sources")
    # An earlier version would take them for its own.
    op.execute(sa.text("DELETE FROM runs WHERE origin = 'external'"))
    with op.batch_alter_table("runs") as table:
        table.drop_column("token_id")
        table.drop_column("origin")
    # An earlier version would let them do all that their role does.
    op.execute(sa.text("DELETE FROM tokens WHERE scope IS NOT NULL"))
    with op.batch_alter_table("tokens") as table:
        table.drop_column("scope")
