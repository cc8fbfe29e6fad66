"""games that go on from an episode or in which agents act, and emulator states"""

import sqlalchemy as sa
from alembic import op

revision = "0131"
down_revision = "0121"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("play_sessions", "recordings"):
        op.add_column(table, sa.Column("actors", sa.JSON(), nullable=False, server_default="[]"))
        op.add_column(table, sa.Column("source", sa.JSON(), nullable=True))
    for table in ("episodes", "recordings"):
        op.add_column(table, sa.Column("states_sha256", sa.String(length=64), nullable=True))
    op.add_column("play_sessions", sa.Column("agent", sa.JSON(), nullable=True))
    op.add_column("play_sessions", sa.Column("moment", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("play_sessions", "moment")
    op.drop_column("play_sessions", "agent")
    for table in ("recordings", "episodes"):
        op.drop_column(table, "states_sha256")
    for table in ("recordings", "play_sessions"):
        op.drop_column(table, "source")
        op.drop_column(table, "actors")
