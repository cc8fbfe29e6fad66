"""Tables `views` and `view_states`: what people have arranged on pages."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.specs.run_fields import MAX_PROJECT

MAX_VIEW_NAME = 100


class View(Base):
    """A view of runs. One without a name is the state of an address that would be too long."""

    __tablename__ = "views"
    __table_args__ = (UniqueConstraint("owner_id", "project", "name"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    """Whose it is. With a user only views without a name are deleted: the others pass to an admin before."""
    project: Mapped[str] = mapped_column(String(MAX_PROJECT), default="")
    """The project whose runs it shows; empty for those of all. Not null, since nulls are not unique."""
    name: Mapped[str | None] = mapped_column(String(MAX_VIEW_NAME))
    shared: Mapped[bool] = mapped_column(default=False)
    """Whether everybody may open it, and operators may change it."""
    version: Mapped[int] = mapped_column(default=1)
    """Number of its changes, from 1: a save names the version that it replaces."""
    document: Mapped[dict[str, Any]]
    """See `backend.analysis.views.document`; what is the default is left out."""
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]


class ViewState(Base):
    """A former document of a view, which can be restored."""

    __tablename__ = "view_states"

    view_id: Mapped[str] = mapped_column(ForeignKey("views.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    """The version of the view that had it last."""
    document: Mapped[dict[str, Any]]
    saved_at: Mapped[datetime]
    """When it was saved."""
