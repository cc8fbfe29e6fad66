"""Routes of `/runs`."""

from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Query

from backend.auth.access import Operator, Viewer
from backend.dependencies import Artifacts, ReadSession, WriteSession
from backend.idempotency.route import IdempotentRoute
from backend.ids import Ulid
from backend.pagination import Cursor, Limit
from backend.runs import bulk, fork, repository, service
from backend.runs.bulk import BulkOut, BulkRequest
from backend.runs.fork import ForkRequest
from backend.runs.schemas import (
    ArchiveRequest,
    AttemptOut,
    ChildOut,
    LogLineOut,
    LogPage,
    ResumeRequest,
    RunChanges,
    RunDetail,
    RunItems,
    RunOut,
    RunPage,
    RunRequest,
    TransitionOut,
)
from backend.specs.states import RunState
from backend.text import Text

router = APIRouter(prefix="/runs", tags=["runs"], route_class=IdempotentRoute)

SORT_PATTERN = f"^-?({'|'.join(repository.SORTS)})$"
Words = Annotated[list[Text], Query(max_length=50)]


@router.post("", status_code=201)
def create_runs(body: RunRequest, actor: Operator, session: WriteSession) -> RunOut | RunItems:
    """Store a run, or with `seeds` one run a seed (answered with `items`), and queue it."""
    runs = [RunOut.of(run) for run in service.create(session, body, actor.id)]
    return RunItems(items=runs) if body.get("seeds") is not None else runs[0]


@router.get("")
def list_runs(
    actor: Viewer,
    session: ReadSession,
    id: Annotated[list[Ulid], Query(max_length=100, description="Any of these.")] = [],  # noqa: B006
    state: Annotated[list[RunState], Query(description="Any of these.")] = [],  # noqa: B006
    algorithm: Annotated[Words, Query(description="Any of these ids.")] = [],  # noqa: B006
    environment: Annotated[Words, Query(description="Any of these ids.")] = [],  # noqa: B006
    tag: Annotated[Words, Query(description="All of these.")] = [],  # noqa: B006
    group: Annotated[Text | None, Query(max_length=200)] = None,
    archived: Literal["false", "true", "all"] = "false",
    search: Annotated[
        Text | None, Query(max_length=500, description="Text in name, notes, ids, group or tags.")
    ] = None,
    filter: Annotated[
        Text | None,
        Query(
            max_length=2_000,
            description="`algorithm:paac environment:Pong score>10 tag:baseline or tag:new`: terms side by "
            "side must all hold; `and` binds before `or`, `or` before side by side; `not`, parentheses.",
        ),
    ] = None,
    sort: Annotated[
        str, Query(pattern=SORT_PATTERN, description="A field; `-` before it: largest first.")
    ] = "-created_at",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> RunPage:
    """Runs that fit every parameter given. Rows without a value of `sort` come last."""
    asked = service.listing(
        ids=id,
        states=state,
        algorithms=algorithm,
        environments=environment,
        tags=tag,
        group=group,
        archived={"false": False, "true": True, "all": None}[archived],
        search=search,
        filter_text=filter,
    )
    rows, next_cursor, total = repository.page(
        session,
        asked,
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
        limit=limit,
        cursor=cursor,
    )
    return RunPage(items=[RunOut.of(run) for run in rows], next_cursor=next_cursor, total=total)


@router.post("/bulk")
def change_runs(
    body: BulkRequest, actor: Operator, session: WriteSession, artifacts: Artifacts, later: BackgroundTasks
) -> BulkOut:
    """Do the same to many runs: each it fits, with the reason for each it does not."""
    answer = bulk.apply(session, body)
    if body.action == "delete" and not body.dry_run:
        for item in answer.items:
            if item.done:
                later.add_task(artifacts.delete_run, item.id)
    return answer


@router.get("/{run_id:ulid}")
def read_run(run_id: Ulid, actor: Viewer, session: ReadSession) -> RunDetail:
    """A run with its attempts and changes of state."""
    detail = RunDetail.of(service.get(session, run_id))
    detail.children = [ChildOut.model_validate(child) for child in repository.children(session, run_id)]
    detail.attempts = [AttemptOut.model_validate(a) for a in repository.attempts(session, run_id)]
    detail.transitions = [TransitionOut.model_validate(t) for t in repository.transitions(session, run_id)]
    return detail


@router.patch("/{run_id:ulid}")
def change_run(run_id: Ulid, body: RunChanges, actor: Operator, session: WriteSession) -> RunOut:
    """Change name, notes, tags, group or priority."""
    return RunOut.of(service.change(session, run_id, body))


@router.delete("/{run_id:ulid}", status_code=204)
def delete_run(
    run_id: Ulid, actor: Operator, session: WriteSession, artifacts: Artifacts, later: BackgroundTasks
) -> None:
    """Delete a run that no worker holds, with its series, log, replays and checkpoints."""
    service.delete(session, run_id)
    # After the commit: a crash between them leaves files that nothing names, not rows without files.
    later.add_task(artifacts.delete_run, run_id)


@router.post("/{run_id}/stop")
def stop_run(run_id: Ulid, actor: Operator, session: WriteSession) -> RunOut:
    """Stop and keep a checkpoint. A run that waits in the queue is stopped at once."""
    return RunOut.of(service.stop(session, run_id, kill=False))


@router.post("/{run_id}/kill")
def kill_run(run_id: Ulid, actor: Operator, session: WriteSession) -> RunOut:
    """End a run now; what it did since its newest checkpoint is lost."""
    return RunOut.of(service.stop(session, run_id, kill=True))


@router.post("/{run_id}/resume")
def resume_run(
    run_id: Ulid, actor: Operator, session: WriteSession, body: ResumeRequest | None = None
) -> RunOut:
    """Queue an ended run again, to go on from its newest checkpoint; reached bounds need new ones."""
    return RunOut.of(service.resume(session, run_id, body.stop if body else None))


@router.post("/{run_id}/fork", status_code=201)
def fork_run(
    run_id: Ulid,
    actor: Operator,
    session: ReadSession,
    writing: WriteSession,
    artifacts: Artifacts,
    body: ForkRequest | None = None,
) -> RunOut:
    """A new run that begins from a checkpoint of this one, with changes."""
    return RunOut.of(fork.create(session, writing, artifacts, run_id, body or ForkRequest(), actor.id))


@router.post("/{run_id}/archive")
def archive_run(
    run_id: Ulid, actor: Operator, session: WriteSession, body: ArchiveRequest | None = None
) -> RunOut:
    """Put an ended run away (or fetch it back, with `archived: false`): lists leave it out."""
    return RunOut.of(service.archive(session, run_id, body.archived if body else True))


@router.get("/{run_id}/log")
def read_log(
    run_id: Ulid,
    actor: Viewer,
    session: ReadSession,
    search: Annotated[Text | None, Query(max_length=500)] = None,
    after: Annotated[
        int | None, Query(ge=0, lt=2**63, description="Lines after the one of this id: to follow.")
    ] = None,
    before: Annotated[
        int | None, Query(ge=0, lt=2**63, description="The last lines before the one of this id.")
    ] = None,
    tail: Annotated[bool, Query(description="The last lines of all.")] = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> LogPage:
    """A run's log, the oldest line first; from the start with `cursor`, or around a line you have."""
    service.get(session, run_id)
    next_cursor = None
    if after is not None:
        lines = repository.log_after(session, run_id, search, after, limit)
    elif tail or before is not None:
        lines = repository.log_before(session, run_id, search, before, limit)
    else:
        lines, next_cursor = repository.log_page(session, run_id, search, limit=limit, cursor=cursor)
    return LogPage(items=[LogLineOut.model_validate(line) for line in lines], next_cursor=next_cursor)
