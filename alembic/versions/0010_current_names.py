"""current names of settings and custom environments

`picture_size` becomes `observation_size`; a RunSpec's `own` becomes `custom`; the prefix `Own/` of custom
environments' ids becomes `Custom/`.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Keys and ids as `json.dumps` writes them. A quote within a JSON string is escaped, so that `"own":` is
# always a key.
SPEC = (
    ('"picture_size":', '"observation_size":'),
    ('"own":', '"custom":'),
    ('"environment": "Own/', '"environment": "Custom/'),
    ('"id": "Own/', '"id": "Custom/'),
)
ENVIRONMENT_IDS = (('"Own/', '"Custom/'),)

Pairs = tuple[tuple[str, str], ...]


def upgrade() -> None:
    with op.batch_alter_table("hosts") as table:
        table.alter_column("own_environments", new_column_name="custom_environments")
    _replace_in_json("hosts", "custom_environments", SPEC)
    _replace_in_json("hosts", "environments", ENVIRONMENT_IDS)
    _replace_in_json("runs", "spec", SPEC)
    _replace_prefix("Own/", "Custom/")


def downgrade() -> None:
    _replace_prefix("Custom/", "Own/")
    _replace_in_json("runs", "spec", _reversed(SPEC))
    _replace_in_json("hosts", "environments", _reversed(ENVIRONMENT_IDS))
    _replace_in_json("hosts", "custom_environments", _reversed(SPEC))
    with op.batch_alter_table("hosts") as table:
        table.alter_column("custom_environments", new_column_name="own_environments")


def _reversed(pairs: Pairs) -> Pairs:
    return tuple((new, old) for old, new in pairs)


def _replace_in_json(table: str, column: str, pairs: Pairs) -> None:
    """Replace text in a JSON column, in one statement that leaves other rows alone."""
    text: Any = sa.column(column, sa.Text)
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        text = sa.cast(text, sa.Text)
    value = text
    for old, new in pairs:
        value = sa.func.replace(value, old, new)
    affected = sa.or_(*(sa.func.replace(text, old, "") != text for old, _ in pairs))
    stored = sa.cast(value, sa.JSON) if postgresql else value
    op.execute(sa.update(sa.table(table, sa.column(column))).values({column: stored}).where(affected))


def _replace_prefix(old: str, new: str) -> None:
    environment: Any = sa.column("environment", sa.String)
    rest = sa.func.substr(environment, len(old) + 1)
    op.execute(
        sa.update(sa.table("runs", environment))
        .values(environment=sa.literal(new).concat(rest))
        .where(sa.func.substr(environment, 1, len(old)) == old)
    )
