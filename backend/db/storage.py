"""Tables `retention_settings`, `removed_files` and `clean_up`: what is kept, and what clean-up does."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base


class RetentionSettings(Base):
    """Retention settings of the installation or of a group of runs."""

    __tablename__ = "retention_settings"

    scope: Mapped[str] = mapped_column(String(206), primary_key=True)
    """`installation`, or `group:` and the name of a group."""
    settings: Mapped[dict[str, Any]]
    """In the form of `backend.upkeep.retention.policy`."""
    changed_at: Mapped[datetime]
    changed_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))


class RemovedFile(Base):
    """A file that is no longer referenced, until it is deleted from the artifact store."""

    __tablename__ = "removed_files"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    run_id: Mapped[str] = mapped_column(String(26), index=True)
    """Run of the file; it may be deleted."""
    kind: Mapped[str | None] = mapped_column(String(20))
    """Kind of artifact; None: all files of the run."""
    file: Mapped[str | None] = mapped_column(String(200))
    removed_at: Mapped[datetime]


class CleanUp(Base):
    """State of the clean-up that all workers share: one row."""

    __tablename__ = "clean_up"

    id: Mapped[int] = mapped_column(primary_key=True)
    pass_started_at: Mapped[datetime | None]
    """When the latest pass over all runs started."""
    after_run_id: Mapped[str | None] = mapped_column(String(26))
    """The run after which the pass continues; None: the pass has ended."""
    held_until: Mapped[datetime | None]
    """No file is deleted before then, because a backup copies the files."""
