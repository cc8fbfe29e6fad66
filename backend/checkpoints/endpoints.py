"""Routes of checkpoints."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from backend.auth.access import Viewer
from backend.checkpoints import repository
from backend.checkpoints.schemas import CheckpointOut, CheckpointPage
from backend.dependencies import Artifacts, ReadSession
from backend.errors import NotFound
from backend.ids import Ulid
from backend.pagination import Cursor, Limit
from backend.runs import service as runs
from backend.streaming import BINARY, send_file

router = APIRouter(tags=["checkpoints"])

MEDIA_TYPE = "application/octet-stream"


@router.get("/runs/{run_id}/checkpoints")
def list_checkpoints(
    run_id: Ulid,
    actor: Viewer,
    session: ReadSession,
    gone: Annotated[bool, Query(description="Also those thinned out or superseded.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> CheckpointPage:
    """A run's checkpoints, the newest first."""
    runs.get(session, run_id)
    rows, next_cursor = repository.page(session, run_id, gone=gone, limit=limit, cursor=cursor)
    return CheckpointPage(items=[CheckpointOut.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.get(
    "/checkpoints/{checkpoint_id}/file",
    response_class=Response,
    responses={
        200: {"content": {MEDIA_TYPE: BINARY}},
        206: {"content": {MEDIA_TYPE: BINARY}, "description": "The part that `Range` asks for."},
    },
)
def read_checkpoint_file(
    checkpoint_id: Ulid,
    actor: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    range: Annotated[str | None, Header()] = None,
) -> Response:
    """The checkpoint's file; load it with `torch.load(..., weights_only=True)`."""
    row = repository.get(session, checkpoint_id)
    if row is None:
        raise NotFound(f"there is no checkpoint {checkpoint_id}")
    gone = NotFound(f"the file of checkpoint {checkpoint_id} was thinned out")
    if row.removed:
        raise gone
    try:
        return send_file(
            artifacts,
            row.run_id,
            "checkpoints",
            row.file,
            media_type=MEDIA_TYPE,
            asked_range=range,
            download=True,
        )
    except FileNotFoundError:
        raise gone from None
