"""Routes of the videos that the scripts of external runs have sent."""

from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import Header, Path, Query, Response

from backend.db import Job, Video
from backend.db.job import VIDEO_THUMBNAIL
from backend.fleet.jobs import repository as job_rows
from backend.http.access import Viewer
from backend.http.dependencies import AppStateDep, Artifacts, ReadSession, RequestContextDep
from backend.http.pages import Cursor, Limit, RunId
from backend.http.rendering import THUMBNAIL_ANSWERS, found_or_requested
from backend.http.routing import ResourceRouter
from backend.http.streaming import BINARY, IMMUTABLE, DownloadSlot, send_file
from backend.platform.artifacts import Damaged, thumbnail_file
from backend.platform.errors import Gone, NotFound
from backend.replays.videos import repository, service
from backend.replays.videos.schemas import VideoOut, VideoPage
from backend.runs.runs import service as runs
from backend.specs.fields import ULID

router = ResourceRouter(tags=["episodes"])

VideoId = Annotated[str, Path(pattern=ULID, description="Id of the video.")]

MEDIA_TYPE = "video/mp4"


@router.get("/runs/{run_id}/videos")
def list_videos(
    run_id: RunId,
    principal: Viewer,
    session: ReadSession,
    max_agent_steps: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="With `spread`: videos up to this agent step.")
    ] = None,
    min_agent_steps: Annotated[
        int, Query(ge=0, le=2**63 - 1, description="With `spread`: videos since this agent step.")
    ] = 0,
    spread: Annotated[
        int | None,
        Query(
            ge=1,
            le=100,
            description="At most this many videos that can be watched, in the order of training: all, or the "
            "first of each of at least half as many equal stretches of agent steps. Without further pages.",
        ),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> VideoPage:
    """The videos that the script of an external run has sent, latest first."""
    runs.get(session, run_id)
    if spread is not None:
        rows = repository.spread(
            session, run_id, n=spread, min_agent_steps=min_agent_steps, max_agent_steps=max_agent_steps
        )
        return VideoPage(items=[VideoOut.of(row, None) for row in rows])
    rows, next_cursor = repository.page(session, run_id, limit=limit, cursor=cursor)
    jobs = service.encoding_jobs(session, rows)
    return VideoPage(items=[VideoOut.of(row, jobs.get(row.id)) for row in rows], next_cursor=next_cursor)


@router.get("/videos/{video_id}")
def read_sent_video(video_id: VideoId, principal: Viewer, session: ReadSession) -> VideoOut:
    """One video that the script of an external run has sent."""
    video = service.get(session, video_id)
    return VideoOut.of(video, service.encoding_jobs(session, [video]).get(video.id))


@router.get(
    "/videos/{video_id}/file",
    response_class=Response,
    responses={
        200: {"content": {MEDIA_TYPE: BINARY}, "description": "H.264 MP4."},
        206: {"content": {MEDIA_TYPE: BINARY}, "description": "The range of the `Range` header."},
    },
)
def read_video_file(
    video_id: VideoId,
    principal: Viewer,
    slot: DownloadSlot,
    session: ReadSession,
    artifacts: Artifacts,
    range: Annotated[str | None, Header(description="A part of the file, as in `bytes=0-1023`.")] = None,
) -> Response:
    """A video that a worker has encoded."""
    row = repository.get(session, video_id)
    if row is None or row.video is None:
        raise NotFound(f"video {video_id} does not exist or has not been encoded")
    try:
        artifacts.check(row.run_id, "videos", row.video, row.video_sha256)
        return send_file(
            artifacts, row.run_id, "videos", row.video, media_type=MEDIA_TYPE, range_header=range
        )
    except Damaged:
        raise Gone(f"the file of video {video_id} is damaged") from None
    except FileNotFoundError:
        raise NotFound(f"the file of video {video_id} does not exist") from None


@router.get(
    "/videos/{video_id}/thumbnail",
    response_model=None,
    response_class=Response,
    responses=THUMBNAIL_ANSWERS,
)
async def read_video_thumbnail(
    video_id: VideoId,
    principal: Viewer,
    session: ReadSession,
    state: AppStateDep,
    context: RequestContextDep,
    artifacts: Artifacts,
    again: Annotated[bool, Query(description="Try again if it has failed.")] = False,
) -> Response:
    """The frame in the middle of a video that a worker has encoded, taken on the first request. Too many that
    are not taken yet: 429."""

    def find() -> tuple[Video, Response | Job | None]:
        video = service.get(session, video_id)
        if service.has_thumbnail(artifacts, video):
            with suppress(FileNotFoundError):
                file = thumbnail_file(video.id)
                content = artifacts.read(video.run_id, "videos", file, video.thumbnail_sha256)
                return video, Response(content, media_type="image/jpeg", headers=IMMUTABLE)
        job = job_rows.find(session, VIDEO_THUMBNAIL, video_id)
        session.close()  # so that no connection is held during the wait for a turn
        return video, job

    return await found_or_requested(state, context, find, partial(service.request_thumbnail, again=again))
