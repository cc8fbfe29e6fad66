"""Table `branches`: continuations of recorded episodes."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.db.base import Base
from backend.db.checked_json import CheckedJson
from backend.specs.branches import EpisodeOutcome, Outcome


class Branch(Base):
    """Continuations of one episode from one of its decisions; `outcome` is None until they are played."""

    __tablename__ = "branches"
    __table_args__ = (Index(None, "episode_id", "id"),)

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    """The episode's run."""
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    decision: Mapped[int]
    n_continuations: Mapped[int]
    horizon: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    first_action: Mapped[int | None]
    policy_run_id: Mapped[str] = mapped_column(String(26), index=True)
    """Run of the checkpoint that goes on; its row may be gone."""
    checkpoint: Mapped[str] = mapped_column(String(200))
    """File name of that checkpoint."""
    checkpoint_id: Mapped[str] = mapped_column(String(26))
    checkpoint_agent_steps: Mapped[int] = mapped_column(BigInteger)
    action_values: Mapped[bool]
    """Whether that policy learns Q."""
    gamma: Mapped[float]
    reward_clip: Mapped[float | None]
    """Bound of the rewards that it learns from; None: they are not clipped."""
    episode_outcome: Mapped[dict[str, Any]] = mapped_column(CheckedJson(EpisodeOutcome))
    """How the episode itself went on; empty if that is damaged."""
    outcome: Mapped[dict[str, Any] | None] = mapped_column(CheckedJson(Outcome | None))
    rewards: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """Rewards of all continuations, one after the other, as little-endian float32, compressed by zlib."""
