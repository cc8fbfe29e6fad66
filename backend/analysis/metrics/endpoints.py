"""Metrics of runs: names, curves, and exports at full resolution."""

from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Response

from backend.analysis.metrics import changes, repository, run_fields, service
from backend.analysis.metrics.parameters import ChosenSpread, RequestedAxes
from backend.analysis.metrics.schemas import (
    MEDIA_TYPES,
    Changes,
    Chart,
    FieldsOut,
    Format,
    MetricInfo,
    MetricInfos,
    MetricSummaries,
    SeriesInfo,
    SeriesInfos,
    X,
)
from backend.drawing.catalogue import describe
from backend.http.access import Viewer
from backend.http.dependencies import AppStateDep, ReadSession
from backend.http.pages import RunId, Ulid
from backend.http.routing import ResourceRouter
from backend.http.streaming import BINARY, Download, ExportSlot, ListTurn
from backend.http.transfer import json_response
from backend.platform.errors import Invalid
from backend.platform.text import Text

router = ResourceRouter(tags=["series"])

Runs = Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")]
Metrics = Annotated[
    list[Text], Query(min_length=1, max_length=100, description="Metrics of `/runs/{id}/series`.")
]

MAX_EXPORTED = 200
"""Maximum number of runs of one export: their ids have to fit into an address."""

EXPORTS: dict[str, Any] = {
    media_type: {"schema": {"type": "string"}} if media_type.startswith("text/") else BINARY
    for media_type, _ in MEDIA_TYPES.values()
}


async def _select(
    metric: Annotated[
        list[Text], Query(max_length=100, description="Only these metrics; default: all.")
    ] = [],  # noqa: B006
    sources: Annotated[bool, Query(description="Include the series of single actors.")] = True,
) -> repository.Selected:
    return repository.Selected(metric or None, sources)


@router.get("/runs/{run_id}/series", response_model=SeriesInfos)
def list_series(run_id: RunId, principal: Viewer, session: ReadSession) -> Response:
    """The series of a run: metric, source, number of points, latest value."""
    items = [
        SeriesInfo.model_validate(series, from_attributes=True)
        for series in service.series_of(session, run_id)
    ]
    metric, candidates = service.return_of(session, run_id)
    return json_response(SeriesInfos(items=items, return_metric=metric, return_candidates=candidates))


@router.get("/runs/{run_id}/changes")
def read_changes(
    run_id: RunId,
    principal: Viewer,
    session: ReadSession,
    range_from: Annotated[float, Query(ge=0, le=2**53, description="Where the range starts on the x axis.")],
    range_to: Annotated[float, Query(gt=0, le=2**53, description="Where it ends.")],
    x: Annotated[X, Query(description="What the range counts.")] = "agent_steps",
) -> Changes:
    """The metrics that changed most in a range of x against the range of the same length before."""
    if range_from >= range_to:
        raise Invalid.field("range_to", "must be greater than range_from")
    return changes.of(session, run_id, range_from, range_to, x)


@router.get("/metrics")
def list_metrics(run: Runs, principal: Viewer, session: ReadSession) -> MetricInfos:
    """The metrics of some runs, by name."""
    return MetricInfos(
        items=[
            MetricInfo(metric=metric, title=describe(metric).title, n_runs=n_runs)
            for metric, n_runs in service.metrics_of(session, run)
        ]
    )


@router.get("/series", response_model=Chart)
def read_chart(
    principal: Viewer,
    session: ReadSession,
    run: Runs,
    metric: Metrics,
    axes: RequestedAxes,
    spread: ChosenSpread,
    source: Annotated[
        list[Text],
        Query(max_length=100, description="Actors; default: the run as a whole; `*`: all sources."),
    ] = [],  # noqa: B006 - FastAPI copies it
    group_by: Annotated[
        Literal["seed"] | None,
        Query(description="Show each group, as `GET /comparisons` forms them, as one curve."),
    ] = None,
    since_revision: Annotated[
        list[Annotated[int, Query(ge=0, le=2**62)]],
        Query(
            max_length=100, description="Return only newer data: one revision for all runs, or one per run."
        ),
    ] = [],  # noqa: B006
    merge_equal_x: Annotated[
        bool,
        Query(description="Merge consecutive buckets at one x, as charts draw them; not those of groups."),
    ] = False,
    scored: Annotated[
        bool,
        Query(
            description="Let `rollout/episode_return` stand for the metric by which each run is scored, as "
            "in `/figures/learning_curve`; otherwise only for runs without a metric of this name."
        ),
    ] = False,
) -> Response:
    """Series in buckets of a power-of-two number of points; only the last bucket changes while a series
    grows."""
    request = service.ChartRequest(
        runs=run,
        metrics=metric,
        sources=source,
        axes=axes,
        grouped=group_by == "seed",
        spread=spread,
        since=since_revision,
        is_merged=merge_equal_x,
        scored=scored,
    )
    return Response(service.chart(session, request), media_type="application/json")


_Selected = Annotated[repository.Selected, Depends(_select)]


@router.get("/runs/{run_id}/export", response_class=Download, responses={200: {"content": EXPORTS}})
def export(
    run_id: RunId,
    principal: Viewer,
    slot: ExportSlot,
    state: AppStateDep,
    session: ReadSession,
    selected: _Selected,
    format: Annotated[Format, Query(description="Format of the file.")] = "csv",
) -> Download:
    """Every point of a run at full resolution, in one file; reproducible while no points are added."""
    service.require_format(format)
    started_at = service.training_started_at(session, run_id)
    media_type, ending = MEDIA_TYPES[format]
    return Download(
        service.export(state.db_engine, run_id, format, started_at, selected),
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{run_id}.{ending}"'},
    )


@router.get("/runs/fields")
def list_fields(principal: Viewer, turn: ListTurn, session: ReadSession) -> FieldsOut:
    """The fields by which runs can be filtered and sorted: their own, settings, and recorded metrics."""
    return run_fields.listing(session)


@router.get("/runs/metrics")
def read_summaries(
    principal: Viewer,
    session: ReadSession,
    run: Annotated[list[Ulid], Query(min_length=1, max_length=200, description="Run ids.")],
    metric: Annotated[
        list[Text], Query(min_length=1, max_length=50, description="Metrics of `GET /runs/fields`.")
    ],
) -> MetricSummaries:
    """Last, best, mean, smallest and largest value of metrics of runs as a whole."""
    return run_fields.summaries(session, run, metric)


@router.get("/runs/export", response_class=Download, responses={200: {"content": EXPORTS}})
def export_runs(
    principal: Viewer,
    slot: ExportSlot,
    state: AppStateDep,
    session: ReadSession,
    selected: _Selected,
    run: Annotated[list[Ulid], Query(max_length=MAX_EXPORTED, description="Run ids.")] = [],  # noqa: B006
    filter: Annotated[
        Text | None,
        Query(
            max_length=2_000,
            description="Instead of ids: every run that matches, as for `GET /runs`, at most "
            f"{service.MAX_MATCHED:,}.",
        ),
    ] = None,
    format: Annotated[Format, Query(description="Format of the file.")] = "csv",
) -> Download:
    """Every point of several runs at full resolution, in one file; with their specs and provenance in all
    formats but `npz`."""
    if bool(run) == (filter is not None):
        raise Invalid.field("run", "give either run ids or a filter")
    service.require_format(format)
    ids = list(service.find_runs(session, run)) if filter is None else service.matching(session, filter)
    media_type, ending = MEDIA_TYPES[format]
    return Download(
        service.export_runs(state.db_engine, ids, format, selected),
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="callboard-{len(ids)}-runs.{ending}"'},
    )
