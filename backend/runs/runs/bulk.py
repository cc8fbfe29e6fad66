"""One action on many runs, in short transactions; runs that it cannot be applied to get a reason."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic
from typing import Annotated, Literal

from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.changes import discard_changes
from backend.platform.errors import Conflict, Invalid, NotFound
from backend.platform.schemas import Id
from backend.platform.text import Text
from backend.runs.runs import actions, listing, repository, service
from backend.specs.fields import Schema, Strict
from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.run_fields import MAX_TAGS, Priority, ProjectName, Tags
from backend.specs.states import RunState

MAX_RUNS = 1_000
BATCH_S = 0.1
"""Time after which a transaction takes no further run: it holds SQLite's write lock, which a slow commit may
need for as long again."""

Action = Literal[
    "stop",
    "kill",
    "resume",
    "archive",
    "unarchive",
    "delete",
    "restore",
    "tag",
    "untag",
    "prioritise",
    "move",
]


class BulkRequest(Strict):
    """The body of `POST /runs/bulk`: runs by ids or by a filter, and the action."""

    action: Action
    """What to do with each run."""
    ids: list[Text] | None = Field(default=None, min_length=1, max_length=MAX_RUNS)
    """Ids of the runs; either these or `filter`."""
    filter: Text | None = Field(
        default=None,
        max_length=2_000,
        description="Filter of the runs, as for `GET /runs`; either this or `ids`.",
    )
    tags: Annotated[Tags, Field(min_length=1)] | None = Field(
        default=None, description="Labels that the actions `tag` and `untag` add or remove."
    )
    priority: Priority | None = Field(
        default=None, description="For `prioritise`: the new priority of queued runs."
    )
    project: ProjectName | None = Field(
        default=None, description="For `move`: the project that the runs are to be filed under."
    )
    restorable: bool = Field(
        default=False, description="For `delete`: the runs can be restored for an hour, with `restore`."
    )
    expected: int | None = Field(
        default=None,
        ge=0,
        description="With `filter`: refuse unless exactly this many runs match, as when they were selected.",
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RUNS,
        description="With `filter`: at most this many runs, in order of their ids; `next_after` continues.",
    )
    after: Text | None = Field(
        default=None, max_length=26, description="With `filter`: only runs with later ids."
    )
    dry_run: bool = Field(default=False, description="Return what would be done, and change nothing.")

    def problems(self) -> list[FieldProblem]:
        """Errors of fields that do not fit the others."""
        problems = {}
        if self.ids is None and self.filter is None:
            problems["ids"] = "give either ids or filter"
        if self.ids is not None:
            for name in ("filter", "expected", "limit", "after"):
                if getattr(self, name) is not None:
                    problems[name] = "cannot be combined with ids"
        if self.restorable and self.action != "delete":
            problems["restorable"] = f"is for the action delete, not for {self.action}"
        tags_needed = self.action in ("tag", "untag")
        if tags_needed and self.tags is None:
            problems["tags"] = f"is required by the action {self.action}"
        if not tags_needed and self.tags is not None:
            problems["tags"] = f"is for the actions tag and untag, not for {self.action}"
        for action, name in (("prioritise", "priority"), ("move", "project")):
            is_given = getattr(self, name) is not None
            if (self.action == action) != is_given:
                problems[name] = (
                    f"is for the action {action}, not for {self.action}"
                    if is_given
                    else f"is required by the action {action}"
                )
        return [FieldProblem(field=name, message=message) for name, message in problems.items()]


class BulkItem(Schema):
    """Result for one run."""

    id: Id
    """Id of the run."""
    name: str | None = Field(examples=["PAAC on Pong"])
    """Name of the run; null if there is no such run, or if it was not reached."""
    done: bool
    """Whether the action was applied to the run, or would be with `dry_run`."""
    detail: str
    """The reason, if not done."""
    changed_tags: list[str] = Field(default=[])
    """The tags that `tag` or `untag` added or removed, to undo it."""
    former_project: str | None = None
    """With `move`: the project before, to undo it."""


class BulkOut(Schema):
    """Result for each run."""

    items: list[BulkItem]
    """One result for each run, in the order of the runs' ids."""
    n_done: int
    """Number of runs that the action was applied to."""
    n_refused: int
    """Number of runs that it could not be applied to."""
    next_after: str | None = None
    """With `limit`: pass it as `after` to continue; null after the last run."""


def apply(
    session: Session, transaction: Callable[[], AbstractContextManager[Session]], request: BulkRequest
) -> BulkOut:
    """Apply the action to every run that allows it. If the database fails in the middle, what is committed
    stays, and the results say which runs were not reached.

    Args:
        session: a session to read with.
        transaction: starts a transaction, which is committed at the end of its block.
        request: what to do.

    Raises:
        Invalid: fields do not fit each other, or the filter is invalid, or it matches more than `MAX_RUNS`
            runs without `limit`.
        Conflict: another number of runs matches than expected.
        SQLAlchemyError: the database has failed before anything was committed.
    """
    if problems := request.problems():
        raise Invalid(problems)
    ids, next_after = _ids(session, request)
    # In a fixed order, so that concurrent requests cannot deadlock.
    left, items = sorted(set(ids)), list[BulkItem]()
    while left:
        try:
            with transaction() as writing:
                batch = _batch(writing, request, left)
        except SQLAlchemyError:
            if not items:
                raise
            items += [BulkItem(id=run_id, name=None, done=False, detail=_NOT_REACHED) for run_id in left]
            break
        items += batch
        left = left[len(batch) :]
    n_done = sum(item.done for item in items)
    return BulkOut(items=items, n_done=n_done, n_refused=len(items) - n_done, next_after=next_after)


def _batch(session: Session, request: BulkRequest, run_ids: list[str]) -> list[BulkItem]:
    """Apply the action to the first of these runs, as many as there is time for."""
    items: list[BulkItem] = []
    ends_at = monotonic() + BATCH_S
    for run_id in run_ids:
        items.append(_apply_to_run(session, request, run_id))
        if monotonic() > ends_at:
            break
    if request.dry_run:
        discard_changes(session)  # rolled back savepoints have left theirs
    return items


_NOT_REACHED = "not reached: the database has failed; apply the action to the rest again"


def _ids(session: Session, request: BulkRequest) -> tuple[list[str], str | None]:
    """The requested runs, and the id to continue after."""
    if request.ids is not None:
        return request.ids, None
    # Of the runs that are to be unarchived, lists show none.
    parse = listing.parse_filter if request.action == "unarchive" else listing.parse_selection
    node = parse(request.filter or "")
    listing.check_compared(session, node)
    if request.expected is not None:
        n = repository.count(session, node)
        if n != request.expected:
            raise Conflict(
                f"{n:,} runs match now, and {request.expected:,} did when they were selected: "
                "nothing was changed; check the list and try again"
            )
    limit = request.limit or MAX_RUNS
    ids = repository.ids(session, node, limit=limit + 1, after=request.after or "")
    if len(ids) <= limit:
        return ids, None
    if request.limit is None:
        raise Invalid.field("filter", f"matches more than {MAX_RUNS:,} runs: narrow the filter, or set limit")
    return ids[:limit], ids[limit - 1]


def _apply_to_run(session: Session, request: BulkRequest, run_id: str) -> BulkItem:
    name = None
    savepoint = session.begin_nested()
    try:
        if request.action == "restore":  # `service.get` does not find deleted runs
            run = actions.restore(session, run_id)
        else:
            deletes = request.action == "delete"
            run = service.get(session, run_id, for_update=True, any_spec=deletes)
        name, before, project = run.name, set(run.tags), run.project
        _ACTIONS[request.action](session, run, request)
        session.flush()
        changed = sorted(before ^ set(run.tags))
    except (Conflict, Invalid, InvalidSpec, NotFound) as problem:
        savepoint.rollback()
        return BulkItem(id=run_id, name=name, done=False, detail=str(problem))
    if request.dry_run:
        savepoint.rollback()
    else:
        savepoint.commit()
    former = project if request.action == "move" else None
    return BulkItem(id=run_id, name=name, done=True, detail="", changed_tags=changed, former_project=former)


def _tag(session: Session, run: Run, request: BulkRequest) -> None:
    wanted = (*run.tags, *(tag for tag in request.tags or () if tag not in run.tags))
    if len(wanted) > MAX_TAGS:
        raise Conflict(f"the run would have {len(wanted)} tags; the maximum is {MAX_TAGS}")
    actions.change(session, run.id, {"tags": list(wanted)})


def _untag(session: Session, run: Run, request: BulkRequest) -> None:
    left = tuple(tag for tag in run.tags if tag not in (request.tags or ()))
    actions.change(session, run.id, {"tags": list(left)})


def _prioritise(session: Session, run: Run, request: BulkRequest) -> None:
    if run.state != RunState.QUEUED:
        raise Conflict(f"the run is {run.state}: only a queued run has a place in the queue")
    actions.change(session, run.id, {"priority": request.priority})


_ACTIONS: dict[Action, Callable[[Session, Run, BulkRequest], object]] = {
    "stop": lambda session, run, request: actions.stop(session, run.id, kill=False),
    "kill": lambda session, run, request: actions.stop(session, run.id, kill=True),
    "resume": lambda session, run, request: actions.resume(session, run.id, None),
    "archive": lambda session, run, request: actions.archive(session, run.id, True),
    "unarchive": lambda session, run, request: actions.archive(session, run.id, False),
    "delete": lambda session, run, request: actions.delete(session, run.id, restorable=request.restorable),
    "restore": lambda session, run, request: None,  # done when the run was read
    "tag": _tag,
    "untag": _untag,
    "prioritise": _prioritise,
    "move": lambda session, run, request: actions.change(session, run.id, {"project": request.project}),
}
