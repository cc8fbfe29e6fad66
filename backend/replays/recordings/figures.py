"""The figure of a game that people have played."""

import numpy as np
from sqlalchemy.orm import Session

from backend.drawing.episode_trace import episode_trace_figure
from backend.drawing.figure import Figure, FigureOptions
from backend.platform.errors import Conflict
from backend.replays.recordings import service as recordings
from backend.specs.environments import ENVIRONMENTS


def draw_recording(session: Session, recording_id: str, max_points: int, options: FigureOptions) -> Figure:
    """The rewards of a game that people have played.

    Raises:
        NotFound: there is no such recording.
        Conflict: it has no decision yet.
        Gone: it is damaged.
    """
    recording = recordings.get(session, recording_id)
    parts = recordings.read_parts(session, recording)
    rewards = np.array([reward for part in parts for reward in part.rewards], "f8")
    if not len(rewards):
        raise Conflict("the game has no decision yet: there is nothing to draw")
    environment = ENVIRONMENTS.get(recording.environment)
    where = recording.environment if environment is None else environment.title
    players = recordings.in_words(session, recording, recordings.turns(parts))
    return episode_trace_figure(
        rewards,
        np.empty(0),
        np.empty((0, 0)),
        [],
        panels=["reward"],
        lives=np.array([lives for part in parts for lives in part.lives]),
        title=f"Game of {where} by {players}, score {recording.episode_return:g}",
        max_points=max_points,
        theme=options.theme,
        width_px=options.width_px,
    )
