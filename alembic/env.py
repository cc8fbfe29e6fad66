"""Alembic's entry point: runs migrations on the connection that `backend.db.migrate` opened."""

from typing import Any

from alembic import context

from backend.db import Base


def migrate(connection: Any) -> None:
    """Run on one connection, inside its transaction."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        # Our SQLite connections begin transactions explicitly, so schema changes roll back there too.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


migrate(context.config.attributes["connection"])
