"""Episodes: their traces and videos."""

import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from backend.db import Episode, Job
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.job import THUMBNAIL, VIDEO
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.platform.artifacts import ArtifactStore, Damaged, thumbnail_file
from backend.platform.errors import Conflict, Gone, NotFound, TooMany
from backend.replays.episodes import repository
from backend.replays.episodes.schemas import Trace
from backend.runs.runs import service as runs
from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import EpisodeEvent

MAX_WAITING_VIDEOS = 200
"""Maximum number of videos that are queued or being rendered."""
MAX_WAITING_VIDEOS_OF_USER = 30
MAX_WAITING_THUMBNAILS = 400
"""Maximum number of thumbnails that are queued or being rendered."""
MAX_WAITING_THUMBNAILS_OF_USER = 100
RETRY_S = 10.0

DECIMALS = 4

UNREADABLE = (Damaged, zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, SyntaxError)
"""What reading a damaged replay raises."""

log = structlog.get_logger(__name__)


def find(session: Session, episode_id: str) -> Episode | None:
    """The episode, also one that retention has removed, or None."""
    return session.get(Episode, episode_id)


def record(
    session: Session, run_id: str, attempt: int, finished: EpisodeEvent, replay_bytes: int | None
) -> None:
    """Record an episode of an engine of a locked run.

    Args:
        session: a writing session.
        run_id: the run.
        attempt: number of the attempt whose engine has recorded the replay.
        finished: the engine's event.
        replay_bytes: size of the replay; None if it is unknown.
    """
    episode = Episode(
        id=new_id(),
        run_id=run_id,
        attempt=attempt,
        recorded_at=database_now(session),
        replay_bytes=replay_bytes,
        **finished.model_dump(exclude={"type"}),
    )
    session.add(episode)


def record_video(
    session: Session,
    episode_id: str,
    *,
    file: str,
    sha256: str | None,
    observations_sha256: str | None,
    n_bytes: int,
    states_sha256: str | None = None,
) -> None:
    """Record the rendered video of an episode.

    Args:
        session: a writing session.
        episode_id: the episode.
        file: name of the video's file.
        sha256: checksum of the video.
        observations_sha256: checksum of the video of the network input; None if there is none.
        n_bytes: size of all.
        states_sha256: checksum of the emulator states; None if there are none.
    """
    episode = session.get_one(Episode, episode_id)
    episode.video, episode.video_sha256 = file, sha256
    episode.observations_sha256, episode.states_sha256 = observations_sha256, states_sha256
    episode.video_bytes, episode.video_rendered_at = n_bytes, database_now(session)


def get(session: Session, episode_id: str) -> Episode:
    """The episode.

    Raises:
        NotFound: there is no such episode.
    """
    episode = repository.get(session, episode_id)
    if episode is None:
        raise NotFound(f"episode {episode_id} does not exist")
    return episode


def recorded(session: Session, run_id: str, limit: int = 100) -> list[Episode]:
    """The first recorded episodes of a run, in the order of training."""
    return repository.page(
        session,
        run_id,
        kind=None,
        superseded=False,
        sort="agent_steps",
        descending=False,
        limit=limit,
        cursor=None,
    )[0]


def record_thumbnail(session: Session, episode_id: str, *, sha256: str, n_bytes: int) -> None:
    """Record the rendered thumbnail of an episode."""
    episode = session.get_one(Episode, episode_id)
    episode.thumbnail_sha256, episode.thumbnail_bytes = sha256, n_bytes


def request_video(session: Session, episode: Episode, *, again: bool, requested_by: str | None = None) -> Job:
    """Queue a job that renders the episode's video, or renders it again.

    The run is locked, so that retention does not remove the episode meanwhile.

    Raises:
        NotFound: the episode has been removed.
        Conflict: rendering has failed, and `again` is not set.
        TooMany: too many videos wait to be rendered, of all users or of this one.
    """
    return _request(session, VIDEO, episode, again=again, requested_by=requested_by)


def request_thumbnail(
    session: Session, episode: Episode, *, again: bool, requested_by: str | None = None
) -> Job:
    """Queue a job that renders the episode's thumbnail; as `request_video`."""
    return _request(session, THUMBNAIL, episode, again=again, requested_by=requested_by)


def _request(session: Session, kind: str, episode: Episode, *, again: bool, requested_by: str | None) -> Job:
    run = runs.get(session, episode.run_id, for_update=True)
    get(session, episode.id)
    limit, limit_of_user = (
        (MAX_WAITING_VIDEOS, MAX_WAITING_VIDEOS_OF_USER)
        if kind == VIDEO
        else (MAX_WAITING_THUMBNAILS, MAX_WAITING_THUMBNAILS_OF_USER)
    )
    waiting = job_rows.count_waiting(session, kind)
    of_user = waiting.get(requested_by, 0)
    if sum(waiting.values()) >= limit or of_user >= limit_of_user:
        raise TooMany(f"too many {kind}s are queued for rendering: try again later", RETRY_S)
    if kind == VIDEO and episode.video:
        _forget_video(session, episode.id)
    elif kind == THUMBNAIL and episode.thumbnail_bytes is not None:
        row = session.get_one(Episode, episode.id)
        row.thumbnail_sha256 = row.thumbnail_bytes = None
    job = job_rows.find(session, kind, episode.id)
    if job is not None and job.state == "failed" and not again:
        raise Conflict(f"rendering the {kind} failed: {jobs.reason_of(job)}; retry with again=true")
    return jobs.request(session, kind, episode.run_id, episode.id, queue=run.queue, requested_by=requested_by)


def read_trace(session: Session, store: ArtifactStore, episode: Episode) -> Trace:
    """Read an episode's replay.

    Raises:
        NotFound: its file does not exist.
        Gone: its file is damaged.
    """
    algorithm = ALGORITHMS.get(runs.get(session, episode.run_id).algorithm)
    try:
        content = store.read(episode.run_id, "replays", episode.replay, episode.replay_sha256)
        with np.load(io.BytesIO(content), allow_pickle=False) as replay:
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
                truncated="truncated" in replay and bool(replay["truncated"]),
            )
    except FileNotFoundError:
        raise NotFound(f"the replay of episode {episode.id} does not exist") from None
    except UNREADABLE as error:
        log.warning("replay.damaged", run_id=episode.run_id, episode=episode.id, error=repr(error))
        raise Gone(f"the replay of episode {episode.id} is damaged; watch another episode") from None


@dataclass(frozen=True)
class RepeatableEpisode:
    """What repeats an episode."""

    seed: int
    protocol: str | None
    """Protocol of the evaluation that it was part of; None: a training episode."""
    actions: list[int]
    """Indices of discrete actions."""
    rewards: list[float]
    lives: list[int]
    """Lives left after each action."""


def latest(session: Session, run_id: str, kind: str | None, limit: int) -> list[Episode]:
    """A run's latest recorded episodes, only those of training or of evaluations if `kind` is given."""
    return repository.page(
        session,
        run_id,
        kind=kind,
        superseded=False,
        sort="agent_steps",
        descending=True,
        limit=limit,
        cursor=None,
    )[0]


def read_game(store: ArtifactStore, episode: Episode) -> RepeatableEpisode:
    """Read what repeats an episode of discrete actions from its replay.

    Raises:
        Gone: the replay is missing or damaged.
    """
    try:
        content = store.read(episode.run_id, "replays", episode.replay, episode.replay_sha256)
        with np.load(io.BytesIO(content), allow_pickle=False) as replay:
            return RepeatableEpisode(
                seed=int(replay["seed"]),
                protocol=str(replay["protocol"]) or None,
                actions=replay["actions"].tolist(),
                rewards=replay["rewards"].tolist(),
                lives=replay["lives"].tolist(),
            )
    except (FileNotFoundError, *UNREADABLE) as error:
        log.warning("replay.damaged", run_id=episode.run_id, episode=episode.id, error=repr(error))
        raise Gone(f"the replay of episode {episode.id} is missing or damaged") from None


def protocol_of(store: ArtifactStore, episode: Episode) -> str | None:
    """The protocol of an evaluation's episode; None for one of training, and if its replay is damaged."""
    if episode.kind != "evaluation":
        return None
    try:
        return read_game(store, episode).protocol
    except Gone:
        return None


def is_damaged(store: ArtifactStore, episode: Episode) -> bool:
    """Whether the episode's rendered video is damaged or lost."""
    try:
        check_video(store, episode, episode.video or "", episode.video_sha256)
    except (Gone, FileNotFoundError):
        return True
    return False


def check_video(store: ArtifactStore, episode: Episode, file: str, sha256: str | None) -> None:
    """Check that a rendered video is intact.

    Raises:
        Gone: it is not.
    """
    try:
        store.check(episode.run_id, "videos", file, sha256)
    except Damaged:
        detail = f"the video of episode {episode.id} is damaged; render it again with again=true"
        raise Gone(detail) from None


def has_thumbnail(store: ArtifactStore, episode: Episode) -> bool:
    """Whether the episode's thumbnail is rendered and intact; a damaged or lost one is rendered again."""
    if episode.thumbnail_bytes is None:
        return False
    try:
        store.check(episode.run_id, "videos", thumbnail_file(episode.id), episode.thumbnail_sha256)
    except (Damaged, FileNotFoundError):
        return False
    return True


def _rounded(array: NDArray[np.floating[Any]]) -> Any:
    return np.round(array.astype(np.float64), DECIMALS).tolist()


def _forget_video(session: Session, episode_id: str) -> None:
    """Remove a damaged or lost video from the episode's row."""
    episode = session.get_one(Episode, episode_id)
    episode.video = episode.video_sha256 = episode.observations_sha256 = episode.states_sha256 = None
    episode.video_bytes = episode.video_rendered_at = None
