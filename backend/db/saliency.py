"""Table `saliency_maps`: how agents' outputs change where their input at a decision is blurred."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.db.checked_json import CheckedJson
from backend.specs.saliency import SaliencyMap


class StoredSaliency(Base):
    """The saliency map of one decision of an episode for one checkpoint; `map` is None until it is
    computed."""

    __tablename__ = "saliency_maps"
    __table_args__ = (UniqueConstraint("episode_id", "decision", "checkpoint_id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    """The episode's run."""
    created_at: Mapped[datetime]
    decision: Mapped[int]
    policy_run_id: Mapped[str] = mapped_column(String(26), index=True)
    """Run of the checkpoint; its row may be gone."""
    checkpoint: Mapped[str] = mapped_column(String(200))
    """File name of the checkpoint."""
    checkpoint_id: Mapped[str] = mapped_column(String(26))
    checkpoint_agent_steps: Mapped[int] = mapped_column(BigInteger)
    action_values: Mapped[bool]
    """Whether its policy learns Q."""
    map: Mapped[dict[str, Any] | None] = mapped_column(CheckedJson(SaliencyMap | None))
