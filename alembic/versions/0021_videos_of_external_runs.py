"""videos of external runs"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "videos",
        sa.Column("id", sa.String(26), nullable=False),
        sa.Column("run_id", sa.String(26), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent_steps", sa.BigInteger(), nullable=False),
        sa.Column("wall_time_s", sa.Double(), nullable=False),
        sa.Column("form", sa.String(10), nullable=False),
        sa.Column("fps", sa.Double(), nullable=True),
        sa.Column("upload", sa.String(26), nullable=False),
        sa.Column("sent", sa.String(200), nullable=True),
        sa.Column("sent_sha256", sa.String(64), nullable=True),
        sa.Column("sent_bytes", sa.BigInteger(), nullable=False),
        sa.Column("video", sa.String(200), nullable=True),
        sa.Column("video_sha256", sa.String(64), nullable=True),
        sa.Column("video_bytes", sa.BigInteger(), nullable=False),
        sa.Column("n_frames", sa.Integer(), nullable=True),
        sa.Column("duration_s", sa.Double(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_videos_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_videos"),
    )
    op.create_index("ix_videos_run_id_id", "videos", ["run_id", "id"])


def downgrade() -> None:
    op.drop_index("ix_videos_run_id_id", "videos")
    op.drop_table("videos")
