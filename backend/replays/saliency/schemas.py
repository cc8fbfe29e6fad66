"""Response bodies of saliency maps."""

from pydantic import Field

from backend.db import StoredSaliency
from backend.platform.schemas import Id
from backend.specs.fields import Schema
from backend.specs.saliency import SaliencyMap


class SaliencyOut(Schema):
    """How an agent's outputs change where its input at one decision is blurred (Greydanus et al. 2018)."""

    episode_id: Id
    """Id of the episode."""
    decision: int = Field(examples=[240])
    """Number of the decision, from 0."""
    checkpoint: Id
    """Id of the checkpoint whose agent it is."""
    run_id: Id
    """Id of the checkpoint's run."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps of that run at the checkpoint."""
    action_values: bool
    """Whether the agent learns Q: `policy` is then of Q, and `value` of max Q."""
    map: SaliencyMap
    """The map."""

    @classmethod
    def of(cls, row: StoredSaliency) -> "SaliencyOut":
        """From the row of a map that has been computed."""
        return cls(
            episode_id=row.episode_id,
            decision=row.decision,
            checkpoint=row.checkpoint_id,
            run_id=row.policy_run_id,
            agent_steps=row.checkpoint_agent_steps,
            action_values=row.action_values,
            map=SaliencyMap.model_validate(row.map),
        )
