"""Routes of episodes."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import JSONResponse

from backend.auth.access import Viewer
from backend.dependencies import Artifacts, ReadSession, WriteSession
from backend.episodes import repository, service
from backend.episodes.schemas import EpisodeOut, EpisodePage, Trace, VideoPending
from backend.errors import NotFound
from backend.ids import Ulid
from backend.jobs import repository as jobs
from backend.pagination import Cursor, Limit
from backend.runs import service as runs
from backend.streaming import BINARY, send_file

router = APIRouter(tags=["episodes"])

SORT_PATTERN = f"^-?({'|'.join(repository.SORTS)})$"
VIDEO_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"video/mp4": BINARY}, "description": "H.264 MP4."},
    202: {"model": VideoPending, "description": "Not drawn yet; ask again after `Retry-After` seconds."},
    206: {"content": {"video/mp4": BINARY}, "description": "The part that `Range` asks for."},
}


@router.get("/runs/{run_id}/episodes")
def list_episodes(
    run_id: Ulid,
    actor: Viewer,
    session: ReadSession,
    kind: Literal["training", "evaluation"] | None = None,
    superseded: Annotated[
        bool, Query(description="Also those after the checkpoint a later attempt went on from.")
    ] = False,
    sort: Annotated[str, Query(pattern=SORT_PATTERN)] = "-agent_steps",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> EpisodePage:
    """A run's kept episodes, the newest first by default."""
    runs.get(session, run_id)
    rows, next_cursor = repository.page(
        session,
        run_id,
        kind=kind,
        superseded=superseded,
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
        limit=limit,
        cursor=cursor,
    )
    drawing = jobs.find_all(session, service.VIDEO, [row.id for row in rows])
    return EpisodePage(
        items=[EpisodeOut.of(row, drawing.get(row.id)) for row in rows], next_cursor=next_cursor
    )


@router.get("/episodes/{episode_id}")
def read_episode(episode_id: Ulid, actor: Viewer, session: ReadSession) -> EpisodeOut:
    """One episode."""
    episode = service.get(session, episode_id)
    return EpisodeOut.of(episode, jobs.find(session, service.VIDEO, episode_id))


@router.get("/episodes/{episode_id}/trace")
def read_trace(episode_id: Ulid, actor: Viewer, session: ReadSession, artifacts: Artifacts) -> Trace:
    """Actions, rewards, values and policies of an episode, one entry a decision."""
    return service.read_trace(session, artifacts, service.get(session, episode_id))


@router.get(
    "/episodes/{episode_id}/observations",
    response_model=None,
    response_class=Response,
    responses={code: VIDEO_ANSWERS[code] for code in (200, 206)},
)
def read_observations(
    episode_id: Ulid,
    actor: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    range: Annotated[str | None, Header()] = None,
) -> Response:
    """What the network saw, one picture a decision; drawn with the video, where a world is seen as pixels."""
    episode = service.get(session, episode_id)
    file = repository.observations_file(episode.id)
    try:
        return send_file(artifacts, episode.run_id, "videos", file, media_type="video/mp4", asked_range=range)
    except FileNotFoundError:
        raise NotFound(f"the observations of episode {episode_id} are not drawn") from None


@router.get(
    "/episodes/{episode_id}/video", response_model=None, response_class=Response, responses=VIDEO_ANSWERS
)
def read_video(
    episode_id: Ulid,
    actor: Viewer,
    session: ReadSession,
    writing: WriteSession,
    artifacts: Artifacts,
    again: Annotated[bool, Query(description="Try once more where drawing failed.")] = False,
    range: Annotated[str | None, Header()] = None,
) -> Response:
    """An episode's video; drawn when first asked for."""
    episode = service.get(session, episode_id)
    if episode.video:
        return send_file(
            artifacts, episode.run_id, "videos", episode.video, media_type="video/mp4", asked_range=range
        )
    job = jobs.find(session, service.VIDEO, episode_id)
    if job is None or job.state not in ("queued", "running"):
        job = service.request_video(writing, episode, again=again)
    pending = VideoPending(job=job.id, state="queued" if job.state == "queued" else "running")
    return JSONResponse(pending.model_dump(), 202, headers={"Retry-After": "1"})
