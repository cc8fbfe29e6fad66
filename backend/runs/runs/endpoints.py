"""Create, list, change, stop, resume and fork runs; their logs and live settings; what scripts of external
runs send."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Depends, Query, Request, Response
from sqlalchemy.orm import Session

from backend.fleet.hosts import service as hosts
from backend.fleet.hosts.schemas import QueuePlace
from backend.fleet.storage import service as storage
from backend.http.access import ExternalWriter, Operator, Viewer
from backend.http.dependencies import (
    AppStateDep,
    Artifacts,
    Batches,
    ReadSession,
    RequestContextDep,
    Work,
    WriteSession,
    require_room,
)
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import Cursor, Limit, RunId, Ulid
from backend.http.routing import ResourceRouter
from backend.http.streaming import EstimateTurn, ListTurn
from backend.http.transfer import json_response
from backend.platform.artifacts import ArtifactStore
from backend.platform.text import Text
from backend.runs.runs import actions, bulk, external, listing, queue, repository, requests, service
from backend.runs.runs.bulk import BulkOut, BulkRequest
from backend.runs.runs.names import names_of_runs
from backend.runs.runs.schemas import (
    ArchiveRequest,
    AttemptOut,
    ChildOut,
    DeletedRunOut,
    DeletedRunPage,
    LogLineOut,
    LogPage,
    MoveRequest,
    NamesRequest,
    ProjectItems,
    ProjectOut,
    ResumeRequest,
    RunBody,
    RunDetail,
    RunEstimate,
    RunItems,
    RunName,
    RunNames,
    RunOut,
    RunPage,
    RunRequest,
    TransitionOut,
)
from backend.runs.runs.script_provenance import ProcessOut
from backend.specs.run_fields import EXTERNAL, GroupName, ProjectName
from backend.specs.states import LEASED, RunState

router = ResourceRouter(prefix="/runs", tags=["runs"], route_class=IdempotentRoute)
reading = APIRouter()
"""Routes of `router` that change nothing."""


SHORT_PAGE = 200
"""Runs of a page that every request may ask for, without a turn."""


async def _list_turn(request: Request, principal: Viewer, state: AppStateDep) -> AsyncIterator[None]:
    """A turn for a list that compares or sorts all runs by more than a column, or has a long page."""
    given = request.query_params
    sort, limit = given.get("sort", "").removeprefix("-"), given.get("limit", "")
    is_long = limit != "" and (not limit.isdecimal() or len(limit) > 20 or int(limit) > SHORT_PAGE)
    compares = given.get("filter") or given.get("search") or (sort and sort not in repository.SORTS)
    if not (compares or is_long):
        yield
        return
    async with state.limits.lists.turn(principal.id):
        yield


Archived = Annotated[
    Literal["false", "true", "all"],
    Query(description="Only archived runs, only runs that are not archived (the default), or all."),
]
Words = Annotated[list[Text], Query(max_length=50)]


@router.post("", status_code=201)
def create_runs(
    body: RunRequest,
    principal: ExternalWriter,
    state: AppStateDep,
    work: Work,
) -> RunItems:
    """Create and queue a run; with `seeds` or `grid` one per seed and combination.

    With `origin: external`, create a run that is trained elsewhere: it is `running` immediately, and its
    script sends heartbeats and points.
    """
    require_room(state.settings)
    created = requests.create(work, body, principal)
    state.limits.quotas.charge(principal, state.settings, n_runs=len(created))
    # In the same transaction: a pool of connections could be empty because all wait for a second one.
    return RunItems(
        items=[RunOut.of(run) for run in created],
        warnings=requests.warnings(work.write, created),
        records_scripts=state.settings.record_scripts,
    )


@reading.post("/estimate")
def estimate_runs(body: RunBody, principal: Viewer, turn: EstimateTurn, session: ReadSession) -> RunEstimate:
    """What the runs of such a request would need, and whether a host can run them; creates nothing."""
    return requests.estimate(session, body)


@reading.post("/names", response_model=RunNames)
def name_runs(body: NamesRequest, principal: Viewer, turn: ListTurn, session: ReadSession) -> Response:
    """What runs are called in a view of these: by what differs among them; changes nothing."""
    briefs = repository.briefs_of(session, body.runs)
    view = names_of_runs(briefs, repository.specs_of(session), body.beside)
    items = [RunName(run=run.id, name=name) for run, name in zip(briefs, view.names, strict=True)]
    return json_response(RunNames(shared=view.shared, items=items))


@router.get("", response_model=RunPage)
def list_runs(
    principal: Viewer,
    turn: Annotated[None, Depends(_list_turn, scope="function")],
    session: ReadSession,
    id: Annotated[list[Ulid], Query(max_length=100, description="Any of these.")] = [],  # noqa: B006
    state: Annotated[list[RunState], Query(description="Any of these.")] = [],  # noqa: B006
    algorithm: Annotated[Words, Query(description="Any of these ids.")] = [],  # noqa: B006
    environment: Annotated[Words, Query(description="Any of these ids.")] = [],  # noqa: B006
    tag: Annotated[Words, Query(description="All of these.")] = [],  # noqa: B006
    group: Annotated[GroupName | None, Query(description="Only runs of this group.")] = None,
    project: Annotated[
        ProjectName | None, Query(description="Only runs that are filed under this project.")
    ] = None,
    archived: Archived = "false",
    search: Annotated[
        Text | None,
        Query(max_length=500, description="Text in name, notes, algorithm, environment, group or tags."),
    ] = None,
    filter: Annotated[
        Text | None,
        Query(
            max_length=2_000,
            description="`algorithm:paac environment:Pong score>10 tag:baseline or tag:new`: adjacent "
            "terms must all match; `and` binds tighter than `or`, `or` than adjacency; `not`, parentheses. "
            "`config.learning_rate>=1e-3 and eval/noop_starts/mean_return>15`: settings of the spec, and the "
            "last value of metrics, or with `.best`, `.mean`, `.min` or `.max` another statistic. "
            "`GET /runs/fields` lists the fields.",
        ),
    ] = None,
    sort: Annotated[
        Text,
        Query(
            max_length=250,
            description=f"A field; with the prefix `-` in descending order: {', '.join(repository.SORTS)}, a "
            "setting or a metric as in `filter`.",
        ),
    ] = "-created_at",
    spec: Annotated[bool, Query(description="Include each run's `spec`.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Runs that match every given parameter. Rows without a value of `sort` come last. A page has fewer than
    `limit` runs if their texts are long: `next_cursor` continues."""
    node = listing.build_filter(
        ids=id,
        states=state,
        algorithms=algorithm,
        environments=environment,
        tags=tag,
        group=group,
        project=project,
        archived={"false": False, "true": True, "all": None}[archived],
        search=search,
        filter_text=filter,
    )
    listing.check_compared(session, node)
    listing.check_sort(session, sort.removeprefix("-"))
    rows, next_cursor, total = repository.page(
        session,
        node,
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
        limit=limit,
        cursor=cursor,
    )
    page = RunPage(
        items=[RunOut.of(run, with_spec=spec) for run in rows], next_cursor=next_cursor, total=total
    )
    return json_response(page)


@router.get("/projects")
def list_projects(principal: Viewer, session: ReadSession) -> ProjectItems:
    """Every project that a run is filed under."""
    return ProjectItems(
        items=[ProjectOut(name=name, n_runs=n_runs) for name, n_runs in repository.projects(session)]
    )


@router.get("/deleted")
def list_deleted_runs(
    principal: Viewer, session: ReadSession, limit: Limit = 100, cursor: Cursor = None
) -> DeletedRunPage:
    """Deleted runs that can be restored, those deleted last first."""
    rows, next_cursor, total = repository.deleted_page(session, limit, cursor)
    items = [DeletedRunOut.model_validate(run) for run in rows]
    return DeletedRunPage(items=items, next_cursor=next_cursor, total=total)


@router.post("/bulk")
def change_runs(
    context: RequestContextDep,
    body: BulkRequest,
    principal: Operator,
    session: ReadSession,
    writing: WriteSession,
    batches: Batches,
    artifacts: Artifacts,
    later: BackgroundTasks,
) -> BulkOut:
    """Apply an action to many runs; runs that it cannot be applied to get a reason.

    Several transactions change the runs one after the other. If the database fails in the middle, the results
    say which runs were not reached.
    """
    answer = bulk.apply(session, partial(batches.transaction, changes=not body.dry_run), body)
    context.audited = context.audited and not body.dry_run
    if body.action == "delete" and not body.restorable and not body.dry_run:
        _delete_files(writing, artifacts, later, [item.id for item in answer.items if item.done])
    return answer


@router.get("/{run_id:ulid}", response_model=RunDetail)
def read_run(run_id: RunId, principal: Viewer, session: ReadSession, state: AppStateDep) -> Response:
    """A run with its attempts and state transitions."""
    run = service.get(session, run_id)
    detail = RunDetail.of(run)
    if run.state in LEASED:
        detail.disk_problem = hosts.disk_problem(session, run.host, state.settings)
    detail.children = [ChildOut.model_validate(child) for child in repository.children(session, run_id)]
    detail.attempts = [AttemptOut.model_validate(a) for a in repository.attempts(session, run_id)]
    if detail.origin == EXTERNAL:
        detail.silent_s = external.silent_s(session, run)
        detail.processes = [ProcessOut.of(row) for row in repository.processes(session, run_id)]
    detail.transitions = [TransitionOut.model_validate(t) for t in repository.transitions(session, run_id)]
    return json_response(detail)


@router.get("/{run_id}/queue")
def read_queue(run_id: RunId, principal: Viewer, session: ReadSession, state: AppStateDep) -> QueuePlace:
    """A queued run's place in the queue, the runs ahead of it and its expected start."""
    place = hosts.queue_place(session, service.get(session, run_id), state.settings.lease_s)
    return QueuePlace.model_validate(place)


@router.post("/{run_id}/queue")
def move_in_queue(run_id: RunId, body: MoveRequest, principal: Operator, session: WriteSession) -> RunOut:
    """Move a queued run directly after another one, or to the front of the queue.

    The order is that of the priorities, so the run gets the nearest one that fits; runs ahead that it would
    otherwise overtake are raised.
    """
    return RunOut.of(queue.move(session, run_id, body.after))


@router.delete("/{run_id:ulid}", status_code=204)
def delete_run(
    run_id: RunId,
    principal: Operator,
    session: WriteSession,
    artifacts: Artifacts,
    later: BackgroundTasks,
    restorable: Annotated[
        bool, Query(description="Hide it, and delete it an hour later; until then it can be restored.")
    ] = False,
) -> None:
    """Delete a run without a lease, with its series, log, replays and checkpoints."""
    actions.delete(session, run_id, restorable=restorable)
    if not restorable:
        _delete_files(session, artifacts, later, [run_id])


def _delete_files(
    session: Session, artifacts: ArtifactStore, later: BackgroundTasks, run_ids: list[str]
) -> None:
    """Delete the files of deleted runs after the commit; what fails is left to clean-up."""
    if storage.is_held(session):
        return
    for run_id in run_ids:
        later.add_task(artifacts.delete_run, run_id)


@router.post("/{run_id}/stop")
def stop_run(run_id: RunId, principal: Operator, session: WriteSession) -> RunOut:
    """Stop a run gracefully, with a final checkpoint. A queued run is stopped immediately."""
    return RunOut.of(actions.stop(session, run_id, kill=False))


@router.post("/{run_id}/kill")
def kill_run(run_id: RunId, principal: Operator, session: WriteSession) -> RunOut:
    """Kill a run now; progress since its latest checkpoint is lost."""
    return RunOut.of(actions.stop(session, run_id, kill=True))


@router.post("/{run_id}/checkpoint")
def save_checkpoint(run_id: RunId, principal: Operator, session: WriteSession) -> RunOut:
    """Have a running run save a checkpoint now and go on."""
    return RunOut.of(actions.request_checkpoint(session, run_id))


@router.post("/{run_id}/resume")
def resume_run(
    run_id: RunId, principal: Operator, session: WriteSession, body: ResumeRequest | None = None
) -> RunOut:
    """Queue an ended run again; it resumes from its latest checkpoint. The limits that a finished run has
    reached must be raised. A stopped or failed run at an unchanged limit completes what is missing, such as
    its last evaluation, and finishes.
    """
    body = body or ResumeRequest()
    return RunOut.of(actions.resume(session, run_id, body.stop, body.annealing))


@router.post("/{run_id}/archive")
def archive_run(
    run_id: RunId, principal: Operator, session: WriteSession, body: ArchiveRequest | None = None
) -> RunOut:
    """Archive an ended run, or unarchive it with `archived: false`. Lists hide archived runs."""
    return RunOut.of(actions.archive(session, run_id, body.archived if body else True))


@router.post("/{run_id}/restore")
def restore_run(run_id: RunId, principal: Operator, session: WriteSession) -> RunOut:
    """Bring back a run that was deleted with `restorable` less than an hour ago."""
    return RunOut.of(actions.restore(session, run_id))


@router.get("/{run_id}/log")
def read_log(
    run_id: RunId,
    principal: Viewer,
    session: ReadSession,
    search: Annotated[
        Text | None,
        Query(max_length=500, description="Only lines that contain this text; not case-sensitive."),
    ] = None,
    after: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="Lines after this line id, to follow the log.")
    ] = None,
    before: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="The last lines before this line id.")
    ] = None,
    tail: Annotated[bool, Query(description="The last lines of the log.")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> LogPage:
    """A run's log, oldest line first: from the start with `cursor`, or around a given line."""
    service.get(session, run_id)
    next_cursor = None
    if after is not None:
        lines = repository.log_lines_after(session, run_id, search, after, limit)
    elif tail or before is not None:
        lines = repository.log_lines_before(session, run_id, search, before, limit)
    else:
        lines, next_cursor = repository.log_page(session, run_id, search, limit=limit, cursor=cursor)
    return LogPage(items=[LogLineOut.model_validate(line) for line in lines], next_cursor=next_cursor)


router.include_router(reading)
