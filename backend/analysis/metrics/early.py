"""Up to where a training score is *early*: that of the episodes that ended first, hence of short ones.

The score is the mean of the last 100 returns of ended episodes. Before each environment has done as many
steps as a long episode has, only short ones have ended: 32 environments whose episodes have 1 or 200 steps,
half of them each, have a score of short episodes alone for 6,400 agent steps. What the running episodes hold
is known without looking at them: all agent steps but those of ended episodes. While these are less than half,
which with episodes of one length L is until each environment has done L steps, a score is early.

A module of its own, because recorders and scripts' batches both need it.
"""

from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.db import Run
from backend.specs.run_fields import EXTERNAL, SCORE_EPISODES

EPISODE_LENGTH = "rollout/episode_length"


def mark_early(session: Session, run: Run) -> None:
    """Extend the stretch of a locked run in which its score is early up to now, if it still is.

    Of a run without lengths of episodes, or whose steps are not agent steps, it is not known. A script may
    log the episodes of one environment of many, which are never half of the steps: its score is not early
    once it is one of 100 episodes.
    """
    if run.step_unit != "agent_steps":
        return
    lengths = [row for row in repository.list_series(session, [run.id], [EPISODE_LENGTH]) if not row.source]
    if run.origin == EXTERNAL and sum(row.n_finite for row in lengths) >= SCORE_EPISODES:
        return
    ended = sum((row.mean_value or 0.0) * row.n_finite for row in lengths)
    if 0 < ended < (run.agent_steps - (run.forked_at_agent_steps or 0)) / 2:
        run.early_agent_steps = run.agent_steps
