"""rendered videos of recorded games"""

import sqlalchemy as sa
from alembic import op

revision = "0121"
down_revision = "0115"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("recordings", sa.Column("video_sha256", sa.String(length=64), nullable=True))
    op.add_column("recordings", sa.Column("video_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("recordings", "video_bytes")
    op.drop_column("recordings", "video_sha256")
