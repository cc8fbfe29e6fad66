"""Alembic's entry point: runs migrations on the connection that `backend.db.migrate` opened."""

from typing import Any

from alembic import context
from alembic.autogenerate.api import AutogenContext

from backend.db import Base
from backend.db.base import UtcDateTime
from backend.db.engine import make_engine
from backend.platform.settings import Settings


def render_item(kind: str, item: Any, autogen: AutogenContext) -> str | bool:
    """Render custom column types as the plain types of the database."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    return False


def migrate(connection: Any) -> None:
    """Run on one connection, inside its transaction."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        render_item=render_item,
        # Our SQLite connections begin transactions explicitly, so schema changes roll back there too.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


connection = context.config.attributes.get("connection")
if connection is not None:
    migrate(connection)
else:  # the `alembic` command, used to create a revision
    with make_engine(Settings().database).execution_options(callboard_writing=True).begin() as opened:
        migrate(opened)
