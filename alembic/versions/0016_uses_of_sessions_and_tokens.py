"""no plain passwords, creators of tokens, uses of sessions and tokens, addresses in the audit trail"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from ulid import ULID

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

SESSIONS = sa.table(
    "sessions",
    sa.column("token_hash", sa.String),
    sa.column("id", sa.String),
    sa.column("last_used_at", sa.DateTime(timezone=True)),
)

USERS = sa.table("users", sa.column("password_hash", sa.String))


def upgrade() -> None:
    # Passwords set by an admin were stored as they were typed; nobody could log in with them.
    plain = USERS.c.password_hash.not_like("$argon2%")
    op.execute(sa.update(USERS).where(plain).values(password_hash=None))
    with op.batch_alter_table("sessions") as table:
        table.add_column(sa.Column("id", sa.String(26), nullable=True))
        table.add_column(sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("address", sa.String(64), nullable=True))
        table.add_column(sa.Column("user_agent", sa.String(300), nullable=True))
        table.add_column(sa.Column("method", sa.String(20), nullable=True))
    connection, now = op.get_bind(), datetime.now(UTC)
    for token_hash in connection.scalars(sa.select(SESSIONS.c.token_hash)).all():
        connection.execute(
            sa.update(SESSIONS)
            .where(SESSIONS.c.token_hash == token_hash)
            .values(id=str(ULID()), last_used_at=now)
        )
    with op.batch_alter_table("sessions") as table:
        table.alter_column("id", existing_type=sa.String(26), nullable=False)
        table.alter_column("last_used_at", existing_type=sa.DateTime(timezone=True), nullable=False)
        table.create_unique_constraint(op.f("uq_sessions_id"), ["id"])
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column("parent_id", sa.String(26), nullable=True))
        table.add_column(sa.Column("created_with", sa.String(20), nullable=True))
        table.add_column(sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("last_used_address", sa.String(64), nullable=True))
        table.create_index(op.f("ix_tokens_parent_id"), ["parent_id"])
        table.create_foreign_key(
            op.f("fk_tokens_parent_id_tokens"), "tokens", ["parent_id"], ["id"], ondelete="CASCADE"
        )
    with op.batch_alter_table("audit_entries") as table:
        table.add_column(sa.Column("address", sa.String(64), nullable=True))
        table.create_index(op.f("ix_audit_entries_time"), ["time"])
    with op.batch_alter_table("jobs") as table:
        table.add_column(sa.Column("requested_by", sa.String(26), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("jobs") as table:
        table.drop_column("requested_by")
    with op.batch_alter_table("audit_entries") as table:
        table.drop_index(op.f("ix_audit_entries_time"))
        table.drop_column("address")
    with op.batch_alter_table("tokens") as table:
        table.drop_constraint(op.f("fk_tokens_parent_id_tokens"), type_="foreignkey")
        table.drop_index(op.f("ix_tokens_parent_id"))
        for column in ("parent_id", "created_with", "last_used_at", "last_used_address"):
            table.drop_column(column)
    with op.batch_alter_table("sessions") as table:
        table.drop_constraint(op.f("uq_sessions_id"), type_="unique")
        for column in ("id", "last_used_at", "address", "user_agent", "method"):
            table.drop_column(column)
