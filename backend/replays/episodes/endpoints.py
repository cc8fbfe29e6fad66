"""Recorded episodes: videos, thumbnails, actions, rewards and value estimates."""

from contextlib import suppress
from functools import partial
from typing import Annotated, Literal, get_args

from fastapi import Header, Path, Query, Request, Response

from backend.db import Episode, Job
from backend.db.job import THUMBNAIL, VIDEO
from backend.drawing.episode_trace import TRACE_PANELS, TracePanel
from backend.fleet.jobs import repository as jobs
from backend.http.access import Viewer
from backend.http.dependencies import AppStateDep, Artifacts, ReadSession, RequestContextDep
from backend.http.figures import FORMATS, FormOptions, MaxPoints, RequestedForm, figure_response
from backend.http.pages import Cursor, Limit, RunId, Ulid
from backend.http.rendering import THUMBNAIL_ANSWERS, VIDEO_ANSWERS, found_or_requested
from backend.http.routing import ResourceRouter
from backend.http.streaming import IMMUTABLE, DownloadSlot, send_file
from backend.http.transfer import json_response
from backend.platform.artifacts import observations_file, thumbnail_file
from backend.platform.errors import NotFound
from backend.replays.episodes import figures as drawn
from backend.replays.episodes import repository, service
from backend.replays.episodes.schemas import EpisodeOut, EpisodePage, Trace
from backend.runs.runs import service as runs
from backend.specs.fields import ULID

router = ResourceRouter(tags=["episodes"])
figures = ResourceRouter(prefix="/figures", tags=["figures"])

EpisodeId = Annotated[str, Path(pattern=ULID, description="Id of the episode.")]

SORT_PATTERN = f"^-?({'|'.join(repository.SORTS)})$"


@router.get("/runs/{run_id}/episodes", response_model=EpisodePage)
def list_episodes(
    run_id: RunId,
    principal: Viewer,
    session: ReadSession,
    kind: Annotated[
        Literal["training", "evaluation"] | None,
        Query(description="Only episodes of training, or of evaluations."),
    ] = None,
    superseded: Annotated[
        bool, Query(description="Include episodes after the checkpoint that a later attempt resumed from.")
    ] = False,
    max_agent_steps: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="Episodes that ended at this agent step or before.")
    ] = None,
    min_agent_steps: Annotated[
        int, Query(ge=0, le=2**63 - 1, description="With `spread`: episodes since this agent step.")
    ] = 0,
    spread: Annotated[
        int | None,
        Query(
            ge=1,
            le=100,
            description="At most this many episodes, in the order of training: all, or the first of each of "
            "at least half as many equal stretches of agent steps. Without further pages, whatever the other "
            "filters.",
        ),
    ] = None,
    sort: Annotated[
        str, Query(pattern=SORT_PATTERN, description="Order of the episodes; with the prefix `-` descending.")
    ] = "-agent_steps",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """A run's recorded episodes, latest first by default."""
    runs.get(session, run_id)
    if spread is not None:
        rows, next_cursor = (
            repository.spread(
                session, run_id, n=spread, min_agent_steps=min_agent_steps, max_agent_steps=max_agent_steps
            ),
            None,
        )
    else:
        rows, next_cursor = repository.page(
            session,
            run_id,
            kind=kind,
            superseded=superseded,
            max_agent_steps=max_agent_steps,
            sort=sort.removeprefix("-"),
            descending=sort.startswith("-"),
            limit=limit,
            cursor=cursor,
        )
    rendering = jobs.find_all(session, VIDEO, [row.id for row in rows])
    items = [EpisodeOut.of(row, rendering.get(row.id)) for row in rows]
    return json_response(EpisodePage(items=items, next_cursor=next_cursor))


@router.get("/episodes/{episode_id}")
def read_episode(episode_id: EpisodeId, principal: Viewer, session: ReadSession) -> EpisodeOut:
    """One episode."""
    episode = service.get(session, episode_id)
    return EpisodeOut.of(episode, jobs.find(session, VIDEO, episode_id))


@router.get("/episodes/{episode_id}/trace")
def read_trace(episode_id: EpisodeId, principal: Viewer, session: ReadSession, artifacts: Artifacts) -> Trace:
    """Actions, rewards, values and policies of an episode, one entry per agent step."""
    return service.read_trace(session, artifacts, service.get(session, episode_id))


@router.get(
    "/episodes/{episode_id}/observations",
    response_model=None,
    response_class=Response,
    responses={code: VIDEO_ANSWERS[code] for code in (200, 206)},
)
def read_observations(
    episode_id: EpisodeId,
    principal: Viewer,
    slot: DownloadSlot,
    session: ReadSession,
    artifacts: Artifacts,
    range: Annotated[str | None, Header(description="A part of the file, as in `bytes=0-1023`.")] = None,
) -> Response:
    """The network input, one observation per agent step; rendered with the video, from pixels only."""
    episode = service.get(session, episode_id)
    file = observations_file(episode.id)
    try:
        service.check_video(artifacts, episode, file, episode.observations_sha256)
        return send_file(
            artifacts, episode.run_id, "videos", file, media_type="video/mp4", range_header=range
        )
    except FileNotFoundError:
        raise NotFound(f"the observations of episode {episode_id} are not rendered") from None


@router.get(
    "/episodes/{episode_id}/video", response_model=None, response_class=Response, responses=VIDEO_ANSWERS
)
async def read_video(
    episode_id: EpisodeId,
    principal: Viewer,
    slot: DownloadSlot,
    session: ReadSession,
    state: AppStateDep,
    context: RequestContextDep,
    artifacts: Artifacts,
    again: Annotated[
        bool, Query(description="Render again if rendering has failed, or the video is damaged.")
    ] = False,
    range: Annotated[str | None, Header(description="A part of the file, as in `bytes=0-1023`.")] = None,
) -> Response:
    """An episode's video, rendered on the first request. Too many that are not rendered yet: 429."""

    def find() -> tuple[Episode, Response | Job | None]:
        episode = service.get(session, episode_id)
        if episode.video and not (again and service.is_damaged(artifacts, episode)):
            # A video that the store has lost is rendered once more.
            with suppress(FileNotFoundError):
                service.check_video(artifacts, episode, episode.video, episode.video_sha256)
                file = episode.video
                return episode, send_file(
                    artifacts, episode.run_id, "videos", file, media_type="video/mp4", range_header=range
                )
        job = jobs.find(session, VIDEO, episode_id)
        session.close()  # so that no connection is held during the wait for a turn
        return episode, job

    return await found_or_requested(state, context, find, partial(service.request_video, again=again))


@router.get(
    "/episodes/{episode_id}/thumbnail",
    response_model=None,
    response_class=Response,
    responses=THUMBNAIL_ANSWERS,
)
async def read_thumbnail(
    episode_id: EpisodeId,
    principal: Viewer,
    session: ReadSession,
    state: AppStateDep,
    context: RequestContextDep,
    artifacts: Artifacts,
    again: Annotated[bool, Query(description="Render again if rendering has failed.")] = False,
) -> Response:
    """The frame in the middle of an episode, rendered on the first request. Too many that are not rendered
    yet: 429."""

    def find() -> tuple[Episode, Response | Job | None]:
        episode = service.get(session, episode_id)
        if service.has_thumbnail(artifacts, episode):
            with suppress(FileNotFoundError):
                file = thumbnail_file(episode.id)
                content = artifacts.read(episode.run_id, "videos", file, episode.thumbnail_sha256)
                return episode, Response(content, media_type="image/jpeg", headers=IMMUTABLE)
        job = jobs.find(session, THUMBNAIL, episode_id)
        session.close()  # so that no connection is held during the wait for a turn
        return episode, job

    return await found_or_requested(state, context, find, partial(service.request_thumbnail, again=again))


@figures.get("/episode_trace", response_model=None, responses=FORMATS)
def episode_trace(
    request: Request,
    episode: Annotated[Ulid, Query(description="Episode id.")],
    principal: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    options: FormOptions,
    form: RequestedForm,
    panel: Annotated[
        list[TracePanel],
        Query(
            min_length=1,
            max_length=len(get_args(TracePanel)),
            description="Panels, top to bottom: rewards, V with the discounted return (max Q of agents that "
            "learn Q), V minus the discounted return, and the policy (Q, or continuous actions). Those "
            "without anything to draw are left out.",
        ),
    ] = list(TRACE_PANELS),  # noqa: B006 - FastAPI copies it
    points: MaxPoints = 1000,
) -> Response:
    """Reward, value and policy over a recorded episode, whose agent steps count from 1."""
    figure = drawn.draw_episode_trace(session, artifacts, episode, panel, points, options)
    return figure_response(request, figure, form, "episode_trace")
