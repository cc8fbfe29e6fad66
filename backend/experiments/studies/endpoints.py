"""Studies: a paper's experiment, or one's own, as runs of several methods on several environments."""

from dataclasses import asdict
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Response
from sqlalchemy.orm import Session

from backend.db import Experiment
from backend.drawing.palette import Theme
from backend.experiments.cells import repository as study_cells
from backend.experiments.definitions import ITEMS, AtScale, study_of
from backend.experiments.experiments import repository, service
from backend.experiments.experiments.schemas import ExperimentChanges
from backend.experiments.experiments.stored import study_spec
from backend.experiments.figures import service as figures
from backend.experiments.figures.kind import StudyDrawing
from backend.experiments.figures.table_files import table_csv, table_latex
from backend.experiments.specs.study import Scale, StudySpec
from backend.experiments.studies import drafts, estimate, export
from backend.experiments.studies.schemas import (
    CellOut,
    CellPage,
    StudyDetail,
    StudyDraft,
    StudyEstimate,
    StudyExtension,
    StudyFigureOut,
    StudyOut,
    StudyPage,
    StudyRequest,
    StudySource,
    UnmeasuredKind,
)
from backend.http.access import Operator, Viewer
from backend.http.dependencies import AppStateDep, ReadSession, Work, WriteSession
from backend.http.figures import FORMATS, FigureForm, RequestedForm, download, file_response
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter
from backend.http.streaming import EstimateTurn
from backend.http.transfer import json_response
from backend.platform.errors import Invalid
from backend.platform.text import Text
from backend.specs.fields import ULID
from backend.specs.problems import FieldProblem, quoted, similar_ids

router = ResourceRouter(prefix="/studies", tags=["studies"], route_class=IdempotentRoute)
reading = APIRouter()

ARCHIVE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        "description": "A zip file.",
    }
}
FIGURE_FORMATS: dict[int | str, dict[str, Any]] = {
    200: FORMATS[200]
    | {
        "model": StudyFigureOut,
        "description": "A figure or table, or a file with it: a table as `csv`, `latex` or `caption`.",
    }
}
StudyId = Annotated[str, Path(pattern=ULID, description="Id of the study.")]


@router.post("", status_code=201)
def create_study(body: StudyRequest, principal: Operator, work: Work) -> StudyOut:
    """Start a study: a figure or table of a paper at a scale, or a study of one's own.

    Its runs are ordinary runs in one group. A finished run fills a cell if specification, seed, limits and
    engine version are equal; it stays in its own group.
    """
    spec, definition, scale = _wanted(body)
    try:
        study = service.create(work, spec, principal, definition=definition, scale=scale)
    except Invalid as error:
        raise _locate(body, error) from None
    return _summary(work.write, study)


@reading.post("/estimate")
def estimate_study(
    body: StudyRequest, principal: Viewer, turn: EstimateTurn, session: ReadSession, state: AppStateDep
) -> StudyEstimate:
    """What such a study would cost on this installation's hosts; starts nothing."""
    spec, definition, _ = _wanted(body)
    try:
        cost = estimate.estimate(session, spec, state.settings.lease_s)
    except Invalid as error:
        raise _locate(body, error) from None
    at = ITEMS[body.item][1].scales[body.scale] if body.item and definition else None
    return _estimate(cost, at, list(spec.differs))


@reading.post("/draft")
def draft_study(
    body: StudySource, principal: Viewer, turn: EstimateTurn, session: ReadSession, state: AppStateDep
) -> StudyDraft:
    """A study made of runs that exist, or of a sweep; starts nothing.

    Its arms are their configurations, its environments and seeds theirs: of arms × environments × seeds it
    starts what does not exist. A random sweep with one seed of its own for each configuration becomes one arm
    with random draws.
    """
    if body.sweep is not None:
        draft = drafts.of_sweep(session, body.sweep)
    else:
        draft = drafts.of_runs(session, body.runs or [])
    cost = estimate.of_cells(
        session,
        draft.planned,
        draft.equal,
        concurrency=draft.spec.concurrency,
        lease_s=state.settings.lease_s,
    )
    return StudyDraft(
        study=draft.spec,
        estimate=_estimate(cost, None, []),
        n_runs=draft.n_runs,
        unused=draft.unused,
    )


@router.get("")
def list_studies(
    principal: Viewer,
    session: ReadSession,
    limit: Limit = 100,
    cursor: Cursor = None,
    definition: Annotated[
        Text | None, Query(max_length=100, description="Only studies of this definition of a paper.")
    ] = None,
    custom: Annotated[
        bool | None, Query(description="Only studies of one's own, or only those of the papers.")
    ] = None,
    run: Annotated[
        str | None, Query(pattern=ULID, description="Only studies of which this run fills a cell.")
    ] = None,
) -> StudyPage:
    """Studies, latest first."""
    rows, next_cursor = repository.page(
        session, "study", definition=definition, custom=custom, run_id=run, limit=limit, cursor=cursor
    )
    counts = repository.counts(session, [row.id for row in rows])
    return StudyPage(items=[StudyOut.of(row, counts) for row in rows], next_cursor=next_cursor)


@router.get("/{study_id:ulid}", response_model=StudyDetail)
def read_study(study_id: StudyId, principal: Viewer, session: ReadSession, state: AppStateDep) -> Response:
    """A study with its definition and its progress."""
    study = service.get(session, "study", study_id)
    spec = study_spec(study.spec)
    cells = study_cells.rows(session, study_id)
    left_s = None
    if study.state == "running":
        left_s = estimate.time_left_s(session, spec, cells, state.settings.lease_s)
    return json_response(StudyDetail.of_rows(_summary(session, study), spec, cells, left_s))


@router.get("/{study_id}/cells")
def list_cells(
    study_id: StudyId, principal: Viewer, session: ReadSession, limit: Limit = 100, cursor: Cursor = None
) -> CellPage:
    """The cells of a study with their runs, by number."""
    study = service.get(session, "study", study_id)
    spec = study_spec(study.spec)
    cells, runs, next_cursor = repository.page_of_cells(session, study_id, limit=limit, cursor=cursor)
    changed = study_cells.changed_runs(session, [study_id])
    items = [
        CellOut.of(
            spec,
            cell,
            runs.get(cell.run_id or ""),
            is_changed=cell.run_id in changed,
            is_running=study.state == "running",
        )
        for cell in cells
    ]
    return CellPage(items=items, next_cursor=next_cursor)


@router.get("/{study_id}/figures/{figure_id}", response_model=None, responses=FIGURE_FORMATS)
def read_study_figure(
    study_id: StudyId,
    figure_id: Annotated[str, Path(max_length=61, description="Id of a figure of the study.")],
    principal: Viewer,
    session: ReadSession,
    form: RequestedForm,
    theme: Annotated[Theme, Query(description="Colours for light or for dark pages.")] = "light",
    width: Annotated[int | None, Query(ge=200, le=4000, description="Width in CSS pixels, if known.")] = None,
    embedded: Annotated[bool, Query(description="For a page, which has a heading of its own.")] = False,
) -> Response:
    """A figure of a study: its runs so far, reduced by the figure's rule."""
    study = service.get(session, "study", study_id)
    spec = study_spec(study.spec)
    if form.format != "json":
        drawn = figures.build_figure(
            session, study, spec, figure_id, theme="light", width_px=width or export.EXPORTED_PX
        )
        return _file(drawn, form)
    drawn = figures.build_figure(session, study, spec, figure_id, theme=theme, width_px=width)
    document = None
    if drawn.figure is not None:
        if embedded:
            drawn.figure.layout.pop("title", None)
            drawn.figure.layout["margin"] = drawn.figure.layout["margin"] | {"t": 32}
        document = drawn.figure.document() | {"revisions": []}
    answer = {
        "id": drawn.spec.id,
        "title": drawn.spec.title,
        "kind": drawn.spec.kind,
        "figure": document,
        "table": None if drawn.table is None else asdict(drawn.table),
        "caption": drawn.caption,
        "finding": drawn.finding,
        "n_in": drawn.n_in,
        "n_planned": drawn.n_planned,
    }
    return Response(orjson.dumps(answer), media_type="application/json")


def _file(drawn: StudyDrawing, form: FigureForm) -> Response:
    """A figure or a table of a study as a download."""
    if drawn.figure is not None:
        return file_response(drawn.figure, form, drawn.spec.id, drawn.text)
    assert drawn.table is not None
    if form.format == "csv":
        content = table_csv(drawn.table)
    elif form.format == "latex":
        content = table_latex(drawn.table, drawn.spec.id, f"{drawn.spec.title}. {drawn.text}")
    elif form.format == "caption":
        content = f"{drawn.text}\n"
    else:
        raise Invalid.field("format", f"a table has no {form.format}; use csv, latex, caption or json")
    return download(content, form, drawn.spec.id)


@router.get("/{study_id}/export", response_class=Response, responses=ARCHIVE)
def export_study(study_id: StudyId, principal: Viewer, session: ReadSession) -> Response:
    """Everything of a study as one folder in a zip file: figures with their data and scripts, settings, runs,
    commands and versions."""
    study = service.get(session, "study", study_id)
    content = export.archive(session, study, study_spec(study.spec))
    disposition = f'attachment; filename="study-{study_id}.zip"'
    return Response(content, media_type="application/zip", headers={"Content-Disposition": disposition})


@router.patch("/{study_id:ulid}")
def change_study(
    study_id: StudyId, body: ExperimentChanges, principal: Operator, session: WriteSession
) -> StudyOut:
    """Change name, notes or concurrency."""
    return _summary(session, service.change(session, "study", study_id, body.model_dump(exclude_unset=True)))


@router.delete("/{study_id:ulid}", status_code=204)
def delete_study(study_id: StudyId, principal: Operator, session: WriteSession) -> None:
    """Delete an ended study. Its runs stay."""
    service.delete(session, "study", study_id)


@router.post("/{study_id}/stop")
def stop_study(study_id: StudyId, principal: Operator, session: WriteSession) -> StudyOut:
    """Start no further run of the study, and stop its own runs that have not ended."""
    return _summary(session, service.stop(session, "study", study_id))


@router.post("/{study_id}/retry")
def retry_study(study_id: StudyId, principal: Operator, session: WriteSession) -> StudyOut:
    """Queue its failed and stopped runs again, fill cells whose run was deleted or changed, and continue the
    study."""
    return _summary(session, service.retry(session, "study", study_id))


@router.post("/{study_id}/extend")
def extend_study(
    study_id: StudyId,
    body: StudyExtension,
    principal: Operator,
    work: Work,
) -> StudyOut:
    """Add draws or environments to a study, or replace its budget, and continue it."""
    extension = body.model_dump(mode="json", exclude_unset=True)
    return _summary(work.write, service.extend(work, "study", study_id, extension))


def _wanted(body: StudyRequest) -> tuple[StudySpec, str | None, Scale | None]:
    """The study of a request, and the definition and scale that it is made from."""
    if body.study is not None:
        return _named(body.study, body), None, None
    name = body.item or ""
    if name not in ITEMS:
        similar = similar_ids(name, ITEMS)
        meant = f"did you mean {' or '.join(similar)}?" if similar else "GET /api/v1/papers lists the ids"
        raise Invalid.field("item", f"unknown figure or table {quoted(name)}; {meant}")
    paper, definition, item = ITEMS[name]
    if not definition.scales:
        raise Invalid.field("item", item.needs or f"{item.label} needs no runs: see {item.page}")
    if body.scale not in definition.scales:
        raise Invalid.field("scale", f"{item.label} has the scales {', '.join(definition.scales)}")
    if body.starts and not item.needs_people and any(other.needs_people for other in definition.items):
        raise Invalid.field("starts", f"{item.label} is of no-op starts: leave them out")
    missing = set(definition.scales[body.scale].environments) - body.starts.keys()
    if body.starts and missing:
        raise Invalid.field("starts", f"has no set for {', '.join(sorted(missing))}: give one for every game")
    spec = study_of(paper, definition, body.scale, body.starts)
    return _named(spec, body), definition.id, body.scale


def _named(spec: StudySpec, body: StudyRequest) -> StudySpec:
    """The study with the name and the project of the request, if it has any."""
    changes: dict[str, Any] = {} if body.name is None else {"name": body.name}
    if body.project is not None:
        changes["run"] = spec.run | {"project": body.project}
    return spec.model_copy(update=changes)


def _locate(body: StudyRequest, error: Invalid) -> Invalid:
    """The problems of a study, with their paths in the request."""
    if body.study is not None:
        return Invalid(
            [problem.model_copy(update={"field": f"study.{problem.field}"}) for problem in error.errors]
        )
    return Invalid(
        [
            problem
            if problem.field.startswith("starts.")
            else FieldProblem(field="scale", message=f"{problem.field}: {problem.message}")
            for problem in error.errors
        ]
    )


def _estimate(cost: estimate.CostEstimate, at: AtScale | None, differs: list[str]) -> StudyEstimate:
    """The cost of a study, which may be a definition at a scale."""
    return StudyEstimate(
        n_runs=cost.n_runs,
        n_reused=cost.n_reused,
        agent_steps=cost.agent_steps,
        time_s=cost.time_s,
        minutes_on_two_cores=at.minutes if at else None,
        memory_bytes=cost.memory_bytes,
        processes=cost.processes,
        disk_bytes=cost.disk_bytes,
        warnings=cost.warnings,
        slots=cost.slots,
        unmeasured=[
            UnmeasuredKind(algorithm=algorithm, environment=environment)
            for algorithm, environment in cost.unmeasured
        ],
        differs=differs,
    )


def _summary(session: Session, study: Experiment) -> StudyOut:
    return StudyOut.of(study, repository.counts(session, [study.id]))


router.include_router(reading)
