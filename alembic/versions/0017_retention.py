"""retention settings, removed files, and sizes of replays, videos and event logs"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retention_settings",
        sa.Column("scope", sa.String(206), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_by", sa.String(26), nullable=True),
        sa.ForeignKeyConstraint(
            ["changed_by"], ["users.id"], name="fk_retention_settings_changed_by_users", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("scope", name="pk_retention_settings"),
    )
    op.create_table(
        "removed_files",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.String(26), nullable=False),
        sa.Column("kind", sa.String(20), nullable=True),
        sa.Column("file", sa.String(200), nullable=True),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_removed_files"),
    )
    op.create_index("ix_removed_files_run_id", "removed_files", ["run_id"])
    op.create_table(
        "clean_up",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("pass_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("after_run_id", sa.String(26), nullable=True),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_clean_up"),
    )
    op.execute(sa.text("INSERT INTO clean_up (id) VALUES (1)"))
    with op.batch_alter_table("episodes") as table:
        table.add_column(sa.Column("replay_bytes", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("video_bytes", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("video_rendered_at", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("removed", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("episodes") as table:
        table.alter_column("removed", server_default=None)
    with op.batch_alter_table("attempts") as table:
        table.add_column(sa.Column("log_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    # Their files may be deleted already.
    op.execute(sa.text("DELETE FROM episodes WHERE removed"))
    with op.batch_alter_table("attempts") as table:
        table.drop_column("log_bytes")
    with op.batch_alter_table("episodes") as table:
        for name in ("removed", "video_rendered_at", "video_bytes", "replay_bytes"):
            table.drop_column(name)
    op.drop_table("clean_up")
    op.drop_index("ix_removed_files_run_id", "removed_files")
    op.drop_table("removed_files")
    op.drop_table("retention_settings")
