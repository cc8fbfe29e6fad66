"""Table `deleted_runs`: runs that were here, for the worker hosts that still have their folders."""

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class DeletedRun(Base):
    """A run that was deleted, and not merely one that this database has never heard of."""

    __tablename__ = "deleted_runs"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
