"""Saved parameters and the state of training."""

from typing import Annotated

from fastapi import Header, Path, Query, Response

from backend.http.access import Viewer
from backend.http.dependencies import Artifacts, ReadSession
from backend.http.pages import Cursor, Limit, RunId
from backend.http.routing import ResourceRouter
from backend.http.streaming import BINARY, DownloadSlot, send_file
from backend.platform.errors import NotFound
from backend.runs.checkpoints import repository, service
from backend.runs.checkpoints.schemas import CheckpointOut, CheckpointPage
from backend.runs.runs import service as runs
from backend.specs.fields import ULID

router = ResourceRouter(tags=["checkpoints"])

CheckpointId = Annotated[str, Path(pattern=ULID, description="Id of the checkpoint.")]

MEDIA_TYPE = "application/octet-stream"


@router.get("/runs/{run_id}/checkpoints")
def list_checkpoints(
    run_id: RunId,
    principal: Viewer,
    session: ReadSession,
    gone: Annotated[bool, Query(description="Include removed and superseded checkpoints.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> CheckpointPage:
    """A run's checkpoints, latest first."""
    runs.get(session, run_id)
    rows, next_cursor = repository.page(session, run_id, gone=gone, limit=limit, cursor=cursor)
    return CheckpointPage(items=[CheckpointOut.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.get(
    "/checkpoints/{checkpoint_id}/file",
    response_class=Response,
    responses={
        200: {"content": {MEDIA_TYPE: BINARY}},
        206: {"content": {MEDIA_TYPE: BINARY}, "description": "The range of the `Range` header."},
    },
)
def read_checkpoint_file(
    checkpoint_id: CheckpointId,
    principal: Viewer,
    slot: DownloadSlot,
    session: ReadSession,
    artifacts: Artifacts,
    range: Annotated[str | None, Header(description="A part of the file, as in `bytes=0-1023`.")] = None,
) -> Response:
    """The checkpoint's file; load it with `torch.load(..., weights_only=True)`.

    Of an external run it is whatever its script has sent: load it only if you trust the script.
    """
    row = service.get_stored(session, checkpoint_id)
    try:
        return send_file(
            artifacts,
            row.run_id,
            "checkpoints",
            row.file,
            media_type=MEDIA_TYPE,
            range_header=range,
            download=True,
        )
    except FileNotFoundError:
        raise NotFound(f"the file of checkpoint {checkpoint_id} has been removed") from None
