"""The figure of a branch."""

import numpy as np
from sqlalchemy.orm import Session

from backend.db.checked_json import DAMAGED
from backend.drawing.branch import FanLine, PersonLine, branch_figure
from backend.drawing.figure import Figure, FigureOptions
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Conflict, Gone
from backend.replays.branches import service as branches
from backend.replays.branches.outcomes import Floats, Returns, discounted_rewards
from backend.replays.episodes import service as episodes
from backend.runs.runs import service as runs
from backend.runs.runs.names import subject
from backend.specs.branches import EpisodeOutcome, Outcome


def draw_branch(
    session: Session, store: ArtifactStore, branch_id: str, returns: Returns, options: FigureOptions
) -> Figure:
    """The fan of a branch.

    Raises:
        NotFound: there is no such branch, or the replay of its episode does not exist.
        Conflict: it has not been played.
        Gone: its row is damaged.
    """
    branch = branches.get(session, branch_id)
    if not branch.episode_outcome:
        raise Gone(f"branch {branch_id} cannot be drawn: {DAMAGED}")
    if branch.outcome is None:
        raise Conflict("the branch has not been played: there is nothing to draw yet")
    outcome = Outcome.model_validate(branch.outcome)
    own = EpisodeOutcome.model_validate(branch.episode_outcome)
    episode = episodes.get(session, branch.episode_id)
    run = runs.get(session, branch.run_id)
    trace = episodes.read_trace(session, store, episode)
    is_discounted = returns == "discounted"

    def line(rewards: Floats, n_valued: int, last_value: float | None) -> FanLine:
        if is_discounted:
            rewards = discounted_rewards(rewards[:n_valued], branch.gamma, branch.reward_clip)
        so_far = np.concatenate([[0.0], np.cumsum(rewards, dtype="f8")])
        bootstrap = last_value if is_discounted else None
        rest = 0.0 if bootstrap is None else branch.gamma**n_valued * bootstrap
        return FanLine(so_far, float(so_far[-1]) + rest, bootstrap is not None)

    lines = [
        line(rewards, played.n_valued, played.last_value)
        for rewards, played in zip(branches.rewards_of(session, branch), outcome.continuations, strict=True)
    ]
    people = [
        PersonLine(game.who, line(game.rewards, game.n_valued, None).returns, game.finished)
        for game in branches.human_continuations(session, branch)
    ]
    first = branch.first_action
    name = f"Q of {trace.action_names[first]}" if branch.action_values and first is not None else None
    policy = f"{branch.n_continuations} continuations by the checkpoint at "
    policy += f"{branch.checkpoint_agent_steps:,} agent steps"
    forced = "" if first is None else f" · first action {trace.action_names[first]}"
    return branch_figure(
        lines,
        line(np.array(trace.rewards[branch.decision :], "f8"), own.n_valued, own.last_value),
        people,
        value=outcome.value if is_discounted else None,
        value_name=name or ("max Q" if branch.action_values else "V"),
        y="Discounted return so far" if is_discounted else "Return so far",
        title=f"Branch at decision {branch.decision + 1:,} of an episode, {subject([run])}",
        subtitle=f"{policy} · at most {branch.horizon:,} decisions{forced}",
        theme=options.theme,
        width_px=options.width_px,
    )
