"""Trained agents for other programs: weights with a model card."""

from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Response

from backend.analysis.agents import service
from backend.db import Job, Run
from backend.db.job import AGENT
from backend.fleet.jobs import repository as jobs
from backend.http.access import Viewer
from backend.http.dependencies import AppStateDep, Artifacts, ReadSession, RequestContextDep
from backend.http.pages import RunId
from backend.http.rendering import RenderingPending, found_or_requested
from backend.http.routing import ResourceRouter
from backend.http.streaming import BINARY, DownloadSlot, send_file
from backend.platform.artifacts import agent_file
from backend.runs.runs import service as runs
from backend.specs.agents import AgentFormat, Licence
from backend.specs.fields import CHOSEN_CHECKPOINT

router = ResourceRouter(tags=["checkpoints"])

MEDIA_TYPE = "application/zip"


@router.get(
    "/runs/{run_id}/agent",
    response_model=None,
    response_class=Response,
    responses={
        200: {"content": {MEDIA_TYPE: BINARY}, "description": "The folder, as a ZIP archive."},
        202: {
            "model": RenderingPending,
            "description": "Not exported yet; retry after `Retry-After` seconds.",
        },
        206: {"content": {MEDIA_TYPE: BINARY}, "description": "The range of the `Range` header."},
    },
)
async def export_agent(
    run_id: RunId,
    principal: Viewer,
    slot: DownloadSlot,
    session: ReadSession,
    state: AppStateDep,
    context: RequestContextDep,
    artifacts: Artifacts,
    checkpoint: Annotated[
        str,
        Query(
            pattern=CHOSEN_CHECKPOINT,
            description="`best`: the one with the highest mean return of an evaluation under the run's own "
            "protocol; `latest`; or the id of a checkpoint of the run.",
        ),
    ] = "best",
    format: Annotated[
        AgentFormat, Query(description="Format of the weights. `onnx` runs without Callboard.")
    ] = "safetensors",
    licence: Annotated[
        Licence | None, Query(description="Identifier of a licence for the model card, as in `mit`.")
    ] = None,
    again: Annotated[bool, Query(description="Export again if that has failed.")] = False,
    range: Annotated[str | None, Header(description="A part of the file, as in `bytes=0-1023`.")] = None,
) -> Response:
    """A checkpoint's agent as a folder for other programs: weights, model card, settings, scores and a video,
    as the Hugging Face Hub and RL Zoo lay it out. Exported on the first request, and again after the
    checkpoint was evaluated. Too many that are not exported yet: 429."""

    def find() -> tuple[Run, Response | Job | None]:
        run = runs.get(session, run_id)
        chosen = service.choose(session, run, checkpoint)
        row = service.current(session, chosen, format, service.card_of(session, run, chosen, licence))
        if row is not None and service.is_stored(artifacts, row):
            with suppress(FileNotFoundError):
                return run, send_file(
                    artifacts,
                    run_id,
                    "videos",
                    agent_file(row.id),
                    media_type=MEDIA_TYPE,
                    range_header=range,
                    download=True,
                )
        job = None if row is None else jobs.find(session, AGENT, row.id)
        session.close()  # so that no connection is held during the wait for a turn
        return run, job

    request = partial(
        service.request, checkpoint=checkpoint, file_format=format, licence=licence, again=again
    )
    return await found_or_requested(state, context, find, request)
