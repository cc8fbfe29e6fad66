"""where a series was last cut, and which attempts have resumed"""

import sqlalchemy as sa
from alembic import op

revision = "0161"
down_revision = "0152"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("series", sa.Column("cut_agent_steps", sa.BigInteger(), nullable=True))
    # Of the attempts so far it is not known: what came before one of them is left as it is.
    op.add_column(
        "attempts", sa.Column("has_resumed", sa.Boolean(), server_default=sa.true(), nullable=False)
    )


def downgrade() -> None:
    op.drop_column("attempts", "has_resumed")
    op.drop_column("series", "cut_agent_steps")
