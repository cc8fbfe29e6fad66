"""thumbnails of the videos that scripts have sent"""

import sqlalchemy as sa
from alembic import op

revision = "0142"
down_revision = "0141"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("videos", sa.Column("thumbnail_sha256", sa.String(length=64), nullable=True))
    op.add_column("videos", sa.Column("thumbnail_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("videos", "thumbnail_bytes")
    op.drop_column("videos", "thumbnail_sha256")
