"""Routes of files that a job renders on the first request, such as videos."""

from collections.abc import Callable
from time import monotonic
from typing import Any, Literal, TypeVar

from fastapi import Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from backend.db import Job
from backend.db.engine import writing
from backend.http.context import RequestContext
from backend.http.dependencies import AppState
from backend.http.streaming import BINARY
from backend.platform.schemas import Id
from backend.specs.fields import Schema

T = TypeVar("T")


class RenderingPending(Schema):
    """The video or thumbnail is being rendered: retry later."""

    job: Id
    """Id of the job that renders it; the events of `GET /events` name it."""
    state: Literal["queued", "running"]
    """State of that job."""


VIDEO_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"video/mp4": BINARY}, "description": "H.264 MP4."},
    202: {"model": RenderingPending, "description": "Not rendered yet; retry after `Retry-After` seconds."},
    206: {"content": {"video/mp4": BINARY}, "description": "The range of the `Range` header."},
}

THUMBNAIL_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/jpeg": BINARY}, "description": "JPEG; its longer side has 160 pixels."},
    202: VIDEO_ANSWERS[202],
}


async def found_or_requested(
    state: AppState,
    context: RequestContext,
    find: Callable[[], tuple[T, Response | Job | None]],
    request: Callable[..., Job],
) -> Response:
    """The response that `find` returns, or 202 with the job that renders what is missing.

    Args:
        state: state of the application.
        context: of the request of a user.
        find: returns the row, and its file or the job that renders it; None if there is neither.
        request: queues that job; called with a session, the row and `requested_by`.
    """

    principal = context.principal
    assert principal is not None

    def write(wait_s: float) -> Job:
        with writing(state.db_engine, wait_s=wait_s) as writer:
            job = request(writer, row, requested_by=principal.id)
        state.bus.publish_changes(writer)
        return job

    row, answer = await run_in_threadpool(find)
    if isinstance(answer, Response):
        return answer
    if answer is None or answer.state not in ("queued", "running"):
        # Only here, so that those who watch do not wait for others who write.
        await context.turns.aclose()  # and who only reads does not wait for them
        async with state.limits.writes.turn(principal.credential.payer_id) as ends_at:
            answer = await run_in_threadpool(write, max(0.0, ends_at - monotonic()))
    pending = RenderingPending(job=answer.id, state="queued" if answer.state == "queued" else "running")
    return JSONResponse(pending.model_dump(), 202, headers={"Retry-After": "1"})
