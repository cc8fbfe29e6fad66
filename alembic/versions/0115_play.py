"""sessions in which people play, and the recordings of their games"""

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "play_sessions",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("environment", sa.String(length=200), nullable=False),
        sa.Column("environment_config", sa.JSON(), nullable=False),
        sa.Column("scripted", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("end_reason", sa.Text(), nullable=True),
        sa.Column("host", sa.String(length=200), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_play_sessions_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_play_sessions")),
    )
    op.create_index(op.f("ix_play_sessions_state_id"), "play_sessions", ["state", "id"])
    op.create_index(op.f("ix_play_sessions_user_id"), "play_sessions", ["user_id"])
    op.create_table(
        "recordings",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("session_id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("environment", sa.String(length=200), nullable=False),
        sa.Column("environment_config", sa.JSON(), nullable=False),
        sa.Column("protocol", sa.String(length=50), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("frames_per_step", sa.Integer(), nullable=False),
        sa.Column("action_names", sa.JSON(), nullable=False),
        sa.Column("rom_sha256", sa.String(length=64), nullable=True),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.Column("episode_return", sa.Double(), nullable=False),
        sa.Column("length_steps", sa.Integer(), nullable=False),
        sa.Column("length_frames", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_recordings_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recordings")),
    )
    op.create_index(op.f("ix_recordings_environment_id"), "recordings", ["environment", "id"])
    op.create_index(op.f("ix_recordings_session_id"), "recordings", ["session_id"])
    op.create_index(op.f("ix_recordings_user_id"), "recordings", ["user_id"])
    op.create_table(
        "recording_parts",
        sa.Column("recording_id", sa.String(length=26), nullable=False),
        sa.Column("first_step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["recording_id"],
            ["recordings.id"],
            name=op.f("fk_recording_parts_recording_id_recordings"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("recording_id", "first_step", name=op.f("pk_recording_parts")),
    )


def downgrade() -> None:
    op.drop_table("recording_parts")
    op.drop_table("recordings")
    op.drop_table("play_sessions")
