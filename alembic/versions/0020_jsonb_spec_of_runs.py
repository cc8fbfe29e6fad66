"""the spec of a run as jsonb on PostgreSQL"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _change("jsonb")


def downgrade() -> None:
    _change("json")


def _change(to: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE runs ALTER COLUMN spec TYPE {to} USING spec::{to}")
