"""Sweeps: runs of many configurations with several seeds each, and which configurations are worse."""

from collections.abc import Sequence
from typing import Annotated

import orjson
from fastapi import Path, Query, Response
from sqlalchemy.orm import Session

from backend.db import Experiment
from backend.drawing.palette import Theme
from backend.experiments.experiments import repository, scripts, service
from backend.experiments.experiments.schemas import ExperimentChanges
from backend.experiments.specs.sweep import SweepSpec
from backend.experiments.sweeps import figures
from backend.experiments.sweeps.schemas import (
    NextRun,
    ScriptReport,
    ScriptState,
    SweepDetail,
    SweepExtension,
    SweepOut,
    SweepPage,
)
from backend.http.access import Operator, Viewer
from backend.http.dependencies import ReadSession, Work, WriteSession
from backend.http.figures import FORMATS, RequestedForm, file_response
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter
from backend.http.transfer import json_response
from backend.platform.text import Text
from backend.specs.fields import ULID
from backend.specs.states import RunState

router = ResourceRouter(prefix="/sweeps", tags=["sweeps"], route_class=IdempotentRoute)

SweepId = Annotated[str, Path(pattern=ULID, description="Id of the sweep.")]


@router.post("", status_code=201)
def create_sweep(body: SweepSpec, principal: Operator, work: Work) -> SweepOut:
    """Start a sweep: runs of many configurations, each with several seeds.

    Its runs are started in rounds: seed 0 of every configuration, then seed 1, and so on. A race eliminates
    configurations that are worse than another.
    """
    return _summary(work.write, service.create(work, body, principal))


@router.get("")
def list_sweeps(
    principal: Viewer, session: ReadSession, limit: Limit = 100, cursor: Cursor = None
) -> SweepPage:
    """Sweeps, latest first."""
    rows, next_cursor = repository.page(session, "sweep", limit=limit, cursor=cursor)
    return SweepPage(items=_summaries(session, rows), next_cursor=next_cursor)


@router.get("/{sweep_id}", response_model=SweepDetail)
def read_sweep(sweep_id: SweepId, principal: Viewer, session: ReadSession) -> Response:
    """A sweep with its configurations, the scores of their seeds, and the best one."""
    return json_response(_detail(session, sweep_id))


@router.get("/{sweep_id}/scatter", response_model=None, responses=FORMATS)
def read_scatter(
    sweep_id: SweepId,
    principal: Viewer,
    session: ReadSession,
    form: RequestedForm,
    setting: Annotated[Text, Query(description="Path of a setting that varies.")],
    log: Annotated[
        bool | None,
        Query(description="Whether the axis of the setting is logarithmic; default: as suits its values."),
    ] = None,
    theme: Annotated[Theme, Query(description="Colours for light or for dark pages.")] = "light",
) -> Response:
    """The score of each finished seed by a setting, and each configuration's interquartile mean."""
    shown: Theme = "light" if form.is_for_paper else theme
    figure = figures.draw_scatter(_detail(session, sweep_id), setting, log=log, theme=shown)
    if form.format != "json":
        return file_response(figure, form, "scatter")
    return Response(orjson.dumps(figure.document()), media_type="application/json")


@router.patch("/{sweep_id}")
def change_sweep(
    sweep_id: SweepId, body: ExperimentChanges, principal: Operator, session: WriteSession
) -> SweepOut:
    """Change name, notes or concurrency."""
    return _summary(session, service.change(session, "sweep", sweep_id, body.model_dump(exclude_unset=True)))


@router.delete("/{sweep_id}", status_code=204)
def delete_sweep(sweep_id: SweepId, principal: Operator, session: WriteSession) -> None:
    """Delete an ended sweep. Its runs stay."""
    service.delete(session, "sweep", sweep_id)


@router.post("/{sweep_id}/stop")
def stop_sweep(sweep_id: SweepId, principal: Operator, session: WriteSession) -> SweepOut:
    """Start no further run of the sweep, and stop those that have not ended."""
    return _summary(session, service.stop(session, "sweep", sweep_id))


@router.post("/{sweep_id}/retry")
def retry_sweep(sweep_id: SweepId, principal: Operator, session: WriteSession) -> SweepOut:
    """Queue its failed and stopped runs again, start others in place of deleted and changed ones, and
    continue the sweep."""
    return _summary(session, service.retry(session, "sweep", sweep_id))


@router.post("/{sweep_id}/next")
def take_next_run(sweep_id: SweepId, principal: Operator, session: WriteSession) -> NextRun:
    """Create the run of the sweep's next configuration, to start its script: for a sweep whose `run` has the
    origin `external`. `callboard experiments run` does this. The run is lost unless its script, or a report,
    is heard of every minute."""
    return NextRun.of(*scripts.take(session, sweep_id, principal))


@router.post("/{sweep_id}/report")
def report_run(
    sweep_id: SweepId, body: ScriptReport, principal: Operator, session: WriteSession
) -> ScriptState:
    """Report that the script of a run of the sweep goes on, or how it has ended."""
    run = scripts.report(session, sweep_id, body.run, RunState(body.state), body.reason, free=body.free)
    return ScriptState(state=run.state, stop_requested=run.stop_requested is not None)


@router.post("/{sweep_id}/extend")
def extend_sweep(
    sweep_id: SweepId,
    body: SweepExtension,
    principal: Operator,
    work: Work,
) -> SweepOut:
    """Add seeds, configurations or values to a sweep, or replace its budget, and continue it."""
    extension = body.model_dump(mode="json", exclude_unset=True)
    return _summary(work.write, service.extend(work, "sweep", sweep_id, extension))


def _summaries(session: Session, sweeps: Sequence[Experiment]) -> list[SweepOut]:
    ids = [sweep.id for sweep in sweeps]
    counts, configurations = repository.counts(session, ids), repository.configuration_counts(session, ids)
    return [SweepOut.of(sweep, counts, configurations) for sweep in sweeps]


def _summary(session: Session, sweep: Experiment) -> SweepOut:
    return _summaries(session, [sweep])[0]


def _detail(session: Session, sweep_id: str) -> SweepDetail:
    sweep = service.get(session, "sweep", sweep_id)
    configurations = repository.configurations(session, sweep_id)
    return SweepDetail.of_rows(_summary(session, sweep), configurations, service.scored_rows(session, sweep))
