"""Routes that the scripts of external runs write to, and the changes of any run, which may score it anew."""

from typing import Annotated, Any

from fastapi import Body, Depends, Header, Path, Query, Request, Response
from pydantic import GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from backend.external import columns, files, service
from backend.external.schemas import (
    MAX_SEQUENCE,
    MAX_SERIES_OF_REQUEST,
    MAX_UPLOAD_BYTES,
    ConfigBatch,
    EpisodesBatch,
    Heartbeat,
    HeartbeatOut,
    HistogramsBatch,
    LogBatch,
    PointsBatch,
    ProvenanceBatch,
    Stored,
    UploadOut,
)
from backend.http.access import ExternalWriter, Operator, Viewer
from backend.http.dependencies import AppStateDep, IngestSession, ReadSession, ReportSession, WriteSession
from backend.http.errors import TooLarge
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import RunId
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.platform.errors import Invalid, Problem
from backend.runs.runs.schemas import RunChanges, RunOut
from backend.runs.runs.script_provenance import ProcessDetail
from backend.specs.extras import installed
from backend.specs.fields import ULID
from backend.specs.problems import quoted

router = ResourceRouter(prefix="/runs", tags=["runs"], route_class=IdempotentRoute)


class DescribedAs:
    """Documents the JSON of a body that may also be something else, such as an Arrow stream."""

    def __init__(self, model: Any) -> None:
        schema = TypeAdapter(model).core_schema
        if schema["type"] == "model":  # otherwise the document would have it inline, without its name
            reference = core_schema.definition_reference_schema(schema["ref"])
            schema = core_schema.definitions_schema(reference, [schema])
        self._schema = schema

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the type."""
        return handler(self._schema)


PointsBody = Annotated[Any, Body(), DescribedAs(PointsBatch)]
"""A JSON value, or the bytes of another content type."""

ARROW = "application/vnd.apache.arrow.stream"

_ARROW_BODY = {
    "requestBody": {
        "content": {
            ARROW: {
                "schema": {
                    "type": "string",
                    "contentMediaType": ARROW,
                    "description": "An Arrow IPC stream without compression, with the columns `metric` "
                    "(string, preferably dictionary-encoded), `agent_steps` (int64), `frames` (int64, may "
                    "be null or omitted), `wall_time_s` and `value` (float64).",
                }
            }
        }
    }
}


_PART_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "minLength": 1,
                    "description": "The next bytes of the file.",
                }
            }
        },
    }
}


async def _part(request: Request) -> bytes:
    return await request.body()


@router.patch("/{run_id:ulid}")
def change_run(run_id: RunId, body: RunChanges, principal: Operator, session: WriteSession) -> RunOut:
    """Change name, notes, tags, group or priority, or the metric by which an external run is scored."""
    return RunOut.of(service.change(session, run_id, body.model_dump(mode="json", exclude_unset=True)))


@router.post("/{run_id}/heartbeat")
def send_heartbeat(
    run_id: RunId,
    principal: ExternalWriter,
    state: AppStateDep,
    session: ReportSession,
    body: Heartbeat | None = None,
) -> HeartbeatOut:
    """Report that the script of an external run is running, or has ended.

    Without a heartbeat, points, episodes or log lines for 60 s the run is `lost`, until the next one. The
    answer states whether the script should end.
    """
    answer = service.heartbeat(session, run_id, principal, body or Heartbeat())
    return answer.model_copy(update={"records_scripts": state.settings.record_scripts})


@router.post("/{run_id}/points", openapi_extra=_ARROW_BODY)
def add_points(
    run_id: RunId,
    principal: ExternalWriter,
    session: IngestSession,
    request: Request,
    body: PointsBody,
    callboard_source: Annotated[
        str | None,
        Header(
            alias="Callboard-Source",
            pattern=ULID,
            description="For an Arrow stream: `source`, as in JSON.",
        ),
    ] = None,
    callboard_sequence: Annotated[
        int | None,
        Header(
            alias="Callboard-Sequence",
            ge=1,
            le=MAX_SEQUENCE,
            description="For an Arrow stream: `sequence`, as in JSON.",
        ),
    ] = None,
) -> Stored:
    """Store points of an external run, once: a batch that is sent again changes nothing.

    Points whose agent steps decrease within a metric are dropped and counted.
    """
    if isinstance(body, bytes):
        batch = _of_stream(request, body, callboard_source, callboard_sequence)
    else:
        batch = columns.of_points(columns.validate(PointsBatch, body))
    if len(batch.series) > MAX_SERIES_OF_REQUEST:
        # Each needs a part of the time for which the database is locked. Clients halve the request.
        raise TooLarge(
            f"the request has points of {len(batch.series):,} metrics: send at most {MAX_SERIES_OF_REQUEST} "
            "together"
        )
    return service.add_points(session, run_id, principal, batch)


def _of_stream(
    request: Request, body: bytes, source: str | None, sequence: int | None
) -> columns.PointColumns:
    """The points of a body that is not JSON.

    Raises:
        Invalid: it is not an Arrow stream, a header is missing, or this server cannot read Arrow.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != ARROW:
        raise Invalid.field("Content-Type", f"must be application/json or {ARROW}, got {quoted(kind)}")
    if source is None or sequence is None:
        missing = "Callboard-Source" if source is None else "Callboard-Sequence"
        raise Invalid.field(missing, "is required for an Arrow stream")
    if not installed("parquet"):
        raise Invalid.missing_extra("Content-Type", "Arrow streams", "parquet", "send JSON instead")
    from backend.external.arrow import of_arrow  # pyarrow's import takes a tenth of a second

    return of_arrow(body, source, sequence)


@router.post("/{run_id}/episodes")
def add_episodes(
    run_id: RunId, principal: ExternalWriter, session: IngestSession, body: EpisodesBatch
) -> Stored:
    """Store returns and lengths of training episodes of an external run, once, as points."""
    return service.add_points(session, run_id, principal, columns.of_episodes(body))


@router.post("/{run_id}/histograms")
def add_histograms(
    run_id: RunId, principal: ExternalWriter, session: IngestSession, body: HistogramsBatch
) -> Stored:
    """Store histograms of an external run, once.

    Those beyond the 10,000 histograms, images and tables, or the 1 GiB, that are kept of a run are dropped
    and counted.
    """
    return service.add_histograms(session, run_id, principal, body)


@router.post("/{run_id}/log")
def add_log_lines(run_id: RunId, principal: ExternalWriter, session: IngestSession, body: LogBatch) -> Stored:
    """Store lines of an external run's log, once."""
    return service.add_lines(session, run_id, principal, body)


@router.post("/{run_id}/config")
def add_config(run_id: RunId, principal: ExternalWriter, session: IngestSession, body: ConfigBatch) -> Stored:
    """Add settings to the config of an external run, once, and what else was not known at its start."""
    return service.add_config(session, run_id, principal, body)


@router.post("/{run_id}/provenance")
def add_provenance(
    run_id: RunId,
    principal: ExternalWriter,
    state: AppStateDep,
    session: IngestSession,
    body: ProvenanceBatch,
) -> Stored:
    """Store where a process of an external run's script came from, and what it has printed, once.

    Nothing is stored if the installation has turned that off (`CALLBOARD_RECORD_SCRIPTS`). Of a run's
    processes the last 100 are kept.
    """
    records = state.settings.record_scripts
    return service.add_provenance(session, run_id, principal, body, records=records)


@router.get("/{run_id}/processes/{source}", response_model=ProcessDetail)
def read_process(
    run_id: RunId,
    source: Annotated[str, Path(pattern=ULID, description="The ULID of the process.")],
    principal: Viewer,
    session: ReadSession,
) -> Response:
    """Where a process of an external run's script came from, and the end of what it has printed."""
    return json_response(ProcessDetail.of(service.process(session, run_id, source)))


@router.put("/{run_id}/uploads/{upload}", openapi_extra=_PART_BODY)
def send_upload(
    run_id: RunId,
    upload: Annotated[str, Path(pattern=ULID, description="A ULID that the script chooses for the file.")],
    principal: ExternalWriter,
    state: AppStateDep,
    offset: Annotated[
        int, Query(ge=0, lt=MAX_UPLOAD_BYTES, description="Bytes of the file that have already been sent.")
    ],
    part: Annotated[bytes, Depends(_part)],
) -> UploadOut:
    """Append a part of a file, of at most 2 MiB, to an upload of an external run.

    Another offset than the number of stored bytes is refused with status 409 and the expected number. When
    all is sent, `POST /runs/{id}/checkpoints`, `/videos` or `/media` takes the file. An unfinished upload is
    deleted a day after its first part. While a run has too many of them, the answer is 503.
    """
    quotas = state.limits.quotas
    quotas.charge(principal, state.settings, n_bytes=len(part))
    try:
        return UploadOut(received_bytes=files.append(state, run_id, principal, upload, offset, part))
    except Problem:
        quotas.charge(principal, state.settings, n_bytes=-len(part))  # nothing was stored; scripts try again
        raise


@router.post("/{run_id}/checkpoints")
def add_checkpoint(
    run_id: RunId,
    principal: ExternalWriter,
    state: AppStateDep,
    checkpoint: files.CompleteCheckpoint,
    session: IngestSession,
) -> Stored:
    """Store a file that the script of an external run has saved, once. It is never opened."""
    return files.add_checkpoint(session, state, run_id, principal, checkpoint)


@router.post("/{run_id}/videos")
def add_video(
    run_id: RunId,
    principal: ExternalWriter,
    state: AppStateDep,
    video: files.CompleteVideo,
    session: IngestSession,
) -> Stored:
    """Store a video that the script of an external run has sent, once; a worker encodes it as H.264.

    If it cannot be read as a video, `GET /runs/{id}/videos` and the run's log give the reason.
    """
    return files.add_video(session, state, run_id, principal, video)


@router.post("/{run_id}/media")
def add_media(
    run_id: RunId,
    principal: ExternalWriter,
    state: AppStateDep,
    content: files.CompleteMedia,
    session: IngestSession,
) -> Stored:
    """Store an image or a table of an external run, once.

    One beyond the 10,000 histograms, images and tables, or the 1 GiB, that are kept of a run is dropped and
    counted.
    """
    return files.add_media(session, state, run_id, principal, content)
