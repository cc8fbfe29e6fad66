"""Routes of series: `/runs/{id}/series`, `/series`, `/runs/{id}/export`."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from backend.auth.access import Viewer
from backend.dependencies import ReadSession, ThisParts
from backend.ids import Ulid
from backend.metrics import service
from backend.metrics.charts import Axes
from backend.metrics.grouping import Interval
from backend.metrics.schemas import MEDIA_TYPES, Chart, Format, SeriesInfo, SeriesInfos, X
from backend.metrics.smoothing import MAX_WEIGHT
from backend.streaming import BINARY
from backend.text import Text

router = APIRouter(tags=["series"])

Runs = Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")]
Metrics = Annotated[
    list[Text], Query(min_length=1, max_length=100, description="As `/runs/{id}/series` lists.")
]

EXPORTS: dict[str, Any] = {
    media_type: {"schema": {"type": "string"}} if media_type.startswith("text/") else BINARY
    for media_type, _ in MEDIA_TYPES.values()
}


@router.get("/runs/{run_id}/series")
def list_series(run_id: Ulid, actor: Viewer, session: ReadSession) -> SeriesInfos:
    """The series of a run: names, sources, how many points, the newest value."""
    return SeriesInfos(
        items=[
            SeriesInfo.model_validate(series, from_attributes=True)
            for series in service.series_of(session, run_id)
        ]
    )


@router.get("/series", response_model=Chart)
def read_chart(
    actor: Viewer,
    session: ReadSession,
    run: Runs,
    metric: Metrics,
    source: Annotated[
        list[Text],
        Query(max_length=100, description="Which actors; none: the run as a whole; `*`: all of them."),
    ] = [],  # noqa: B006 - FastAPI copies it
    x: X = "agent_steps",
    points: Annotated[int, Query(ge=1, le=10_000, description="At most this many a series.")] = 1000,
    smooth: Annotated[
        float, Query(ge=0, le=MAX_WEIGHT, description="Weight of the past in the moving average.")
    ] = 0.0,
    group_by: Annotated[
        Literal["seed"] | None, Query(description="Runs that differ in their seed alone as one curve.")
    ] = None,
    interval: Annotated[Interval, Query(description="What a group's band shows.")] = "ci95",
    since_revision: Annotated[
        list[Annotated[int, Query(ge=0, le=2**62)]],
        Query(max_length=100, description="Only what is newer than this: one for all runs or one a run."),
    ] = [],  # noqa: B006
) -> Response:
    """Series in power-of-two buckets of points, of which only the last changes as a series grows."""
    request = service.ChartRequest(
        runs=run,
        metrics=metric,
        sources=source,
        axes=Axes(x=x, max_points=points, smooth=smooth),
        grouped=group_by == "seed",
        interval=interval,
        since=since_revision,
    )
    return Response(service.chart(session, request), media_type="application/json")


@router.get("/runs/{run_id}/export", response_class=StreamingResponse, responses={200: {"content": EXPORTS}})
def export(
    run_id: Ulid, actor: Viewer, parts: ThisParts, session: ReadSession, format: Format = "csv"
) -> StreamingResponse:
    """Every point of a run at full resolution, in one file; the same each time while nothing is added."""
    began = service.began_at(session, run_id)
    media_type, ending = MEDIA_TYPES[format]
    return StreamingResponse(
        service.export(parts.engine, run_id, format, began),
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{run_id}.{ending}"'},
    )
