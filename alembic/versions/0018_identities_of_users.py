"""identities of users at an OpenID Connect provider"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # An index instead of a constraint: SQLite would copy the table, to which sessions and tokens refer.
    op.add_column("users", sa.Column("oidc_issuer", sa.String(500), nullable=True))
    op.add_column("users", sa.Column("oidc_subject", sa.String(255), nullable=True))
    op.create_index(
        op.f("ix_users_oidc_issuer_oidc_subject"), "users", ["oidc_issuer", "oidc_subject"], unique=True
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_users_oidc_issuer_oidc_subject"), "users")
    op.drop_column("users", "oidc_subject")
    op.drop_column("users", "oidc_issuer")
