"""The figure of a recorded episode."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy.orm import Session

from backend.drawing.episode_trace import TracePanel, discount, episode_trace_figure
from backend.drawing.figure import Figure, FigureOptions
from backend.platform.artifacts import ArtifactStore
from backend.replays.episodes import service as episodes
from backend.runs.runs import service as runs
from backend.runs.runs.names import subject


def draw_episode_trace(
    session: Session,
    store: ArtifactStore,
    episode_id: str,
    panels: Sequence[TracePanel],
    max_points: int,
    options: FigureOptions,
) -> Figure:
    """One recorded episode step by step.

    Raises:
        NotFound: there is no such episode, or its replay does not exist.
    """
    episode = episodes.get(session, episode_id)
    run = runs.get(session, episode.run_id)
    trace = episodes.read_trace(session, store, episode)
    rewards, lives = np.array(trace.rewards, "f8"), np.array(trace.lives)
    is_per_life = run.spec["environment_config"].get("life_loss_terminal", False)
    config = run.spec["config"]
    gamma, clip = config.get("gamma"), config.get("reward_clip") or None
    bootstrap = trace.values[-1] if trace.truncated and trace.values else None
    of_lives = lives if is_per_life else None
    returns = None if gamma is None else discount(rewards, gamma, clip, of_lives, bootstrap)
    title = (
        f"Episode at {episode.agent_steps:,} agent steps, return {episode.episode_return:g}, {subject([run])}"
    )
    notes = [] if gamma is None else [f"discount {gamma:g}"]
    if gamma is not None and clip is not None:
        notes.append(f"rewards clipped to ±{clip:g} in the discounted return")
    if gamma is not None and is_per_life:
        notes.append("returns up to the next lost life")
    if gamma is not None and bootstrap is not None:
        notes.append("ended by a limit: the last V stands for what follows")
    return episode_trace_figure(
        rewards,
        np.array(trace.values, "f8"),
        np.array(trace.policies, "f8").reshape(len(rewards), -1) if trace.policies else np.empty((0, 0)),
        trace.action_names,
        panels=panels,
        numbers=np.array(trace.actions, "f8")
        if trace.actions and isinstance(trace.actions[0], list)
        else None,
        returns=returns,
        lives=lives,
        action_values=trace.action_values,
        title=title,
        notes=notes if {"value", "value_error"}.intersection(panels) else (),
        max_points=max_points,
        theme=options.theme,
        width_px=options.width_px,
    )
