"""the tables of the models

Until version 0.2.0 is released there is one schema, that of `backend.db`, and `backend.db.migrate` refuses
any other. So the revision, a digest of the tables, is a new one whenever these change.
"""

import sqlalchemy as sa
from alembic import op

from backend.db import Base

revision = "de33aacb1c09"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    Base.metadata.create_all(op.get_bind(), checkfirst=False)
    op.execute(sa.text("INSERT INTO clean_up (id) VALUES (1)"))
