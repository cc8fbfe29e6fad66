"""Table `exported_agents`: archives of checkpoints' agents, for other programs."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.db.checked_json import CheckedJson
from backend.specs.agents import AgentCard


class StoredAgent(Base):
    """The exported agent of one checkpoint in one format; `sha256` is None until it is exported."""

    __tablename__ = "exported_agents"
    __table_args__ = (UniqueConstraint("checkpoint_id", "format"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    checkpoint_id: Mapped[str] = mapped_column(String(26))
    checkpoint: Mapped[str] = mapped_column(String(200))
    """File name of the checkpoint."""
    format: Mapped[str] = mapped_column(String(20))
    created_at: Mapped[datetime]
    card: Mapped[dict[str, Any]] = mapped_column(CheckedJson(AgentCard))
    """What its model card states: with a new evaluation it is exported again."""
    sha256: Mapped[str | None] = mapped_column(String(64))
    n_bytes: Mapped[int | None] = mapped_column(BigInteger)
