"""Routes of the histograms, images and tables that runs have logged."""

from itertools import groupby
from typing import Annotated

from fastapi import Path, Query, Request, Response

from backend.analysis.media import figures as drawn
from backend.analysis.media import repository, service
from backend.analysis.media.export import SUFFIXES, archive
from backend.analysis.media.schemas import MediaOut, MediaSeries, RunMedia
from backend.http.access import Viewer
from backend.http.dependencies import AppStateDep, Artifacts, ReadSession
from backend.http.figures import FORMATS, FormOptions, RequestedForm, figure_response
from backend.http.pages import RunId, Ulid
from backend.http.routing import ResourceRouter
from backend.http.streaming import BINARY, IMMUTABLE, Download, ExportSlot
from backend.http.transfer import json_response
from backend.platform.artifacts import Damaged
from backend.platform.errors import Gone, NotFound
from backend.platform.text import Text
from backend.runs.runs import service as runs
from backend.specs.fields import ULID

router = ResourceRouter(tags=["media"])
figures = ResourceRouter(prefix="/figures", tags=["figures"])

ZIP = "application/zip"
MediaId = Annotated[str, Path(pattern=ULID, description="Id of the histogram, image or table.")]
Metric = Annotated[
    Text, Query(max_length=200, description="Name of the histograms, such as `policy/actions`.")
]
OfRun = Annotated[Ulid, Query(description="Run id.")]


@router.get("/runs/{run_id}/media", response_model=RunMedia)
def list_media(run_id: RunId, principal: Viewer, session: ReadSession) -> Response:
    """The histograms, images and tables of a run: where they are on its axis, by kind and metric."""
    run = runs.get(session, run_id)
    items = []
    for (kind, metric), rows in groupby(repository.listed(session, run_id), lambda row: row[:2]):
        places = list(rows)
        columns = {"agent_steps": [row.agent_steps for row in places], "ids": [row.id for row in places]}
        items.append(MediaSeries(kind=kind, metric=metric, **columns))
    return json_response(RunMedia(items=items, n_not_kept=run.media_not_kept))


@router.get(
    "/runs/{run_id}/media/export",
    response_class=Download,
    responses={200: {"content": {ZIP: BINARY}}},
)
def export_media(
    run_id: RunId, principal: Viewer, slot: ExportSlot, state: AppStateDep, session: ReadSession
) -> Download:
    """A zip of a run's histograms, images and tables: files, and `media.jsonl` with a line for each item."""
    run = runs.get(session, run_id)
    return Download(
        archive(state.db_engine, state.artifacts, run.id),
        media_type=ZIP,
        headers={"Content-Disposition": f'attachment; filename="{run.id}-media.zip"'},
    )


@router.get("/media/{media_id}")
def read_media(media_id: MediaId, principal: Viewer, session: ReadSession) -> MediaOut:
    """One histogram with its bins, or what is known of an image or a table."""
    return MediaOut.of(service.get(session, media_id))


@router.get(
    "/media/{media_id}/file",
    response_class=Response,
    responses={
        200: {
            "content": dict.fromkeys(SUFFIXES, BINARY),
            "description": "The image as it was sent, or the table: `columns`, and `rows` of cells.",
        }
    },
)
def read_media_file(
    media_id: MediaId,
    principal: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
) -> Response:
    """The file of an image or a table."""
    row = service.get(session, media_id)
    if row.file is None or row.media_type not in SUFFIXES:
        raise NotFound(f"{media_id} is a histogram and has no file: `GET /media/{media_id}` has its bins")
    try:
        content = artifacts.read(row.run_id, "media", row.file, row.sha256)
    except Damaged:
        raise Gone(f"the file of {row.kind} {media_id} is damaged") from None
    except FileNotFoundError:
        raise NotFound(f"the file of {row.kind} {media_id} does not exist") from None
    name = f"{row.kind}-{row.agent_steps}.{SUFFIXES[row.media_type]}"
    # A script has chosen the content: opened by itself it must run and load nothing.
    headers = {
        "Content-Disposition": f'inline; filename="{name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, media_type=row.media_type, headers=headers | IMMUTABLE)


@figures.get("/distribution", response_model=None, responses=FORMATS)
def distribution(
    request: Request,
    run: OfRun,
    metric: Metric,
    principal: Viewer,
    session: ReadSession,
    options: FormOptions,
    form: RequestedForm,
) -> Response:
    """How the values of a metric with histograms are distributed over training: their median within nested
    bands, or the shares of a few whole numbers such as actions."""
    return figure_response(
        request, drawn.draw_distribution(session, run, metric, options), form, "distribution"
    )


@figures.get("/histogram", response_model=None, responses=FORMATS)
def histogram(
    request: Request,
    run: OfRun,
    metric: Metric,
    principal: Viewer,
    session: ReadSession,
    options: FormOptions,
    form: RequestedForm,
    agent_steps: Annotated[
        int | None,
        Query(ge=0, le=2**63 - 1, description="The latest histogram up to here; default: the latest."),
    ] = None,
) -> Response:
    """One histogram of a metric."""
    figure = drawn.draw_histogram(session, run, metric, agent_steps, options)
    return figure_response(request, figure, form, "histogram")
