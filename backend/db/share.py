"""Table `shares`: links that show runs to people without a login."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.db.view import MAX_VIEW_NAME


class Share(Base):
    """A link to a page of certain runs. Its token is shown once, on creation; the table holds its hash."""

    __tablename__ = "shares"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    """Who has created it, and with whom it ends."""
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    title: Mapped[str] = mapped_column(String(MAX_VIEW_NAME))
    runs: Mapped[list[str]]
    """Ids of the runs, which never become more."""
    document: Mapped[dict[str, Any]]
    """How they are shown: see `backend.analysis.views.document`."""
    names: Mapped[bool]
    """Whether the page has the names of runs, groups and paths, and the notes."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
