"""Routes of the videos that the scripts of external runs have sent."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Response

from backend.artifacts import Damaged
from backend.errors import Gone, NotFound
from backend.http.access import Viewer
from backend.http.dependencies import Artifacts, ReadSession
from backend.http.pages import Cursor, Limit, RunId
from backend.http.streaming import BINARY, DownloadSlot, send_file
from backend.runs import service as runs
from backend.specs.fields import ULID
from backend.videos import repository, service
from backend.videos.schemas import VideoOut, VideoPage

router = APIRouter(tags=["episodes"])

VideoId = Annotated[str, Path(pattern=ULID, description="Id of the video.")]

MEDIA_TYPE = "video/mp4"


@router.get("/runs/{run_id}/videos")
def list_videos(
    run_id: RunId, principal: Viewer, session: ReadSession, limit: Limit = 50, cursor: Cursor = None
) -> VideoPage:
    """The videos that the script of an external run has sent, latest first."""
    runs.get(session, run_id)
    rows, next_cursor = repository.page(session, run_id, limit=limit, cursor=cursor)
    jobs = service.encoding_jobs(session, rows)
    return VideoPage(items=[VideoOut.of(row, jobs.get(row.id)) for row in rows], next_cursor=next_cursor)


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
