"""the thumbnails of episodes"""

import sqlalchemy as sa
from alembic import op

revision = "0105"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("episodes", sa.Column("thumbnail_sha256", sa.String(length=64), nullable=True))
    op.add_column("episodes", sa.Column("thumbnail_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("episodes", "thumbnail_bytes")
    op.drop_column("episodes", "thumbnail_sha256")
