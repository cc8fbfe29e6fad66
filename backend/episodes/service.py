"""Episodes: their traces and videos."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactStore
from backend.db import Episode, Job
from backend.episodes import repository
from backend.episodes.schemas import Trace
from backend.errors import Conflict, NotFound
from backend.jobs import repository as jobs
from backend.runs import service as runs
from backend.specs.algorithms import ALGORITHMS

VIDEO = "video"
"""Kind of the job that draws an episode's video."""

DECIMALS = 4


def get(session: Session, episode_id: str) -> Episode:
    """The episode.

    Raises:
        NotFound: there is none.
    """
    episode = repository.get(session, episode_id)
    if episode is None:
        raise NotFound(f"there is no episode {episode_id}")
    return episode


def request_video(session: Session, episode: Episode, *, again: bool) -> Job:
    """Have the episode's video drawn.

    Raises:
        Conflict: it was tried and failed, and `again` is not set.
    """
    job = jobs.find(session, VIDEO, episode.id)
    if job is not None and job.state == "failed" and not again:
        error = (job.error or "").strip().splitlines() or ["no reason known"]
        raise Conflict(f"drawing the video failed: {error[-1]}; ask with again=true to try once more")
    run = runs.get(session, episode.run_id)
    return jobs.request(session, VIDEO, episode.run_id, episode.id, queue=run.queue)


def read_trace(session: Session, store: ArtifactStore, episode: Episode) -> Trace:
    """Read an episode's replay.

    Raises:
        NotFound: its file is gone.
    """
    algorithm = ALGORITHMS.get(runs.get(session, episode.run_id).algorithm)
    try:
        with (
            store.open(episode.run_id, "replays", episode.replay) as opened,
            np.load(opened, allow_pickle=False) as replay,
        ):
            return Trace(
                seed=int(replay["seed"]),
                frames_per_step=int(replay["frames_per_step"]),
                action_names=replay["action_names"].tolist(),
                actions=_rounded(replay["actions"])
                if replay["actions"].ndim > 1
                else replay["actions"].tolist(),
                rewards=_rounded(replay["rewards"]),
                values=_rounded(replay["values"]),
                policies=_rounded(replay["policies"]),
                action_values=algorithm is not None and algorithm.action_values,
                lives=replay["lives"].tolist(),
            )
    except FileNotFoundError:
        raise NotFound(f"the replay of episode {episode.id} is gone") from None


def _rounded(array: NDArray[np.floating[Any]]) -> Any:
    return np.round(array.astype(np.float64), DECIMALS).tolist()
