"""The same done to many runs in one transaction: each run it fits, and the reason for each it does not."""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, Field, model_validator
from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.changes import take_changes, take_work
from backend.errors import Conflict, Invalid, NotFound
from backend.runs import filters, repository, service
from backend.runs.schemas import RunChanges
from backend.specs.fields import Strict
from backend.specs.run import Tag
from backend.text import Text

MAX_RUNS = 1_000

Action = Literal["stop", "kill", "resume", "archive", "unarchive", "delete", "tag", "untag"]


class BulkRequest(Strict):
    """The body of `POST /runs/bulk`: which runs, by ids or by a filter, and what to do to them."""

    action: Action
    ids: list[Text] | None = Field(default=None, min_length=1, max_length=MAX_RUNS)
    filter: Text | None = Field(default=None, max_length=2_000, description="As for `GET /runs`.")
    tags: list[Tag] | None = Field(
        default=None, min_length=1, max_length=50, description="For `tag` and `untag`."
    )
    dry_run: bool = Field(default=False, description="Tell what would be done, and change nothing.")

    @model_validator(mode="after")
    def _one_way(self) -> "BulkRequest":
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or filter, one of them")
        if (self.tags is None) == (self.action in ("tag", "untag")):
            raise ValueError("tags go with tag and untag, and only with them")
        return self


class BulkItem(BaseModel):
    """What became of one run."""

    id: str
    name: str | None
    done: bool
    detail: str
    """Why not, where it was not done."""


class BulkOut(BaseModel):
    """What became of each run."""

    items: list[BulkItem]
    n_done: int
    n_refused: int


def apply(session: Session, asked: BulkRequest) -> BulkOut:
    """Do it to every run it fits.

    Raises:
        Invalid: the filter cannot be read, or fits more than `MAX_RUNS` runs.
    """
    # In one order for everybody, so that two requests cannot wait for each other's rows.
    items = [_one(session, asked, run_id) for run_id in sorted(set(_ids(session, asked)))]
    if asked.dry_run:
        take_changes(session)
        take_work(session)
    n_done = sum(item.done for item in items)
    return BulkOut(items=items, n_done=n_done, n_refused=len(items) - n_done)


def _ids(session: Session, asked: BulkRequest) -> list[str]:
    if asked.ids is not None:
        return asked.ids
    try:
        node = filters.parse(asked.filter or "")
    except filters.BadFilter as error:
        raise Invalid.field("filter", str(error)) from None
    found = repository.ids(session, node, limit=MAX_RUNS + 1)
    if len(found) > MAX_RUNS:
        raise Invalid.field("filter", f"fits more than {MAX_RUNS} runs: narrow it")
    return found


def _one(session: Session, asked: BulkRequest, run_id: str) -> BulkItem:
    name = None
    savepoint = session.begin_nested()
    try:
        run = service.get(session, run_id, for_update=True)
        name = run.name
        _ACTIONS[asked.action](session, run, asked.tags or [])
        session.flush()
    except (Conflict, NotFound) as problem:
        savepoint.rollback()
        return BulkItem(id=run_id, name=name, done=False, detail=problem.detail)
    if asked.dry_run:
        savepoint.rollback()
    else:
        savepoint.commit()
    return BulkItem(id=run_id, name=name, done=True, detail="")


def _tag(session: Session, run: Run, tags: list[str]) -> None:
    wanted = [*run.tags, *(tag for tag in tags if tag not in run.tags)]
    if len(wanted) > 50:
        raise Conflict(f"the run would have {len(wanted)} tags; 50 are the most")
    service.change(session, run.id, RunChanges(tags=wanted))


def _untag(session: Session, run: Run, tags: list[str]) -> None:
    service.change(session, run.id, RunChanges(tags=[tag for tag in run.tags if tag not in tags]))


_ACTIONS: dict[Action, Callable[[Session, Run, list[str]], object]] = {
    "stop": lambda session, run, tags: service.stop(session, run.id, kill=False),
    "kill": lambda session, run, tags: service.stop(session, run.id, kill=True),
    "resume": lambda session, run, tags: service.resume(session, run.id, None),
    "archive": lambda session, run, tags: service.archive(session, run.id, True),
    "unarchive": lambda session, run, tags: service.archive(session, run.id, False),
    "delete": lambda session, run, tags: service.delete(session, run.id),
    "tag": _tag,
    "untag": _untag,
}
