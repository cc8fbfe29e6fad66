"""A new run that begins where another one was: the same specification with changes, from its checkpoint."""

from typing import Any, Literal

from pydantic import Field, JsonValue
from sqlalchemy.orm import Session

from backend.artifacts import ArtifactStore
from backend.checkpoints import repository as checkpoints
from backend.db import Checkpoint, Run
from backend.db.ids import new_id
from backend.errors import Conflict, Invalid
from backend.runs import repository, service
from backend.specs.fields import Strict, marked
from backend.specs.names import fork_name
from backend.specs.run import MAX_SEED, FieldProblem, RunSpec, StopSpec, Tag, parse_run_spec
from backend.text import Text


class ForkRequest(Strict):
    """The body of `POST /runs/{id}/fork`: what is left out stays as it is in the parent."""

    checkpoint: Text | None = Field(
        default=None, max_length=26, description="Id of a checkpoint of the parent; its newest by default."
    )
    config: dict[Text, JsonValue] = Field(default={}, description="Changes to the algorithm's settings.")
    environment_config: dict[Text, JsonValue] = Field(
        default={}, description="Changes to the world's settings."
    )
    stop: StopSpec | None = Field(default=None, description="New bounds, instead of all the parent's.")
    name: Text | None = Field(default=None, min_length=1, max_length=200)
    seed: int | None = Field(default=None, ge=0, le=MAX_SEED)
    device: Literal["auto", "cpu", "cuda"] | None = None
    queue: Literal["cpu", "gpu"] | None = None
    host: Text | None = Field(default=None, max_length=200)
    priority: int | None = Field(default=None, ge=-100, le=100)
    group: Text | None = Field(default=None, max_length=200)
    tags: list[Tag] | None = Field(default=None, max_length=50)
    notes: Text | None = Field(default=None, max_length=20_000)


def create(
    session: Session,
    writing: Session,
    store: ArtifactStore,
    run_id: str,
    asked: ForkRequest,
    created_by: str,
) -> Run:
    """Store the new run, with a copy of the checkpoint as its own first one.

    Args:
        session: to read by.
        writing: to write by; not begun before the file is copied, which may take a while.
        store: where checkpoints lie.
        run_id: the parent.
        asked: the changes.
        created_by: id of the user who asks.

    Raises:
        NotFound: there is no such parent.
        Conflict: it has no checkpoint.
        InvalidSpec: the changes do not fit the parent's settings.
        Invalid: the checkpoint is not the parent's, or cannot be begun from with these changes.
    """
    parent = service.get(session, run_id)
    checkpoint = _checkpoint(session, parent, asked.checkpoint)
    spec = _spec(parent, asked)
    _check_start(parent, spec, checkpoint)
    new_run_id, file = new_id(), f"a0-s{checkpoint.agent_steps:012d}.pt"
    try:
        store.copy(run_id, "checkpoints", checkpoint.file, new_run_id, file)
    except FileNotFoundError:
        raise Conflict(f"the file of checkpoint {checkpoint.id} is gone") from None
    reason = f"forked from {parent.name} at {checkpoint.agent_steps:,} agent steps"
    try:
        run = repository.create(
            writing, spec, created_by=created_by, run_id=new_run_id, start=checkpoint, reason=reason
        )
        checkpoints.add_copy(writing, checkpoint, new_run_id, file)
    except Exception:
        store.delete(new_run_id, "checkpoints", file)
        raise
    return run


def _checkpoint(session: Session, parent: Run, checkpoint_id: str | None) -> Checkpoint:
    if checkpoint_id is None:
        newest = checkpoints.newest(session, parent.id)
        if newest is None:
            raise Conflict(f"the run is {parent.state} and has no checkpoint to begin from")
        return newest
    found = checkpoints.get(session, checkpoint_id)
    if found is None or found.run_id != parent.id or found.removed:
        raise Invalid.field("checkpoint", "this run has no such checkpoint")
    return found


def _spec(parent: Run, asked: ForkRequest) -> RunSpec:
    changes: dict[str, Any] = asked.model_dump(exclude={"checkpoint"}, exclude_none=True)
    for section in ("config", "environment_config"):
        changes[section] = parent.spec[section] | changes[section]
    spec = parse_run_spec(parent.spec | changes)
    if asked.name is not None:
        return spec
    return spec.model_copy(update={"name": fork_name(parent.name, parse_run_spec(parent.spec), spec)})


def _check_start(parent: Run, spec: RunSpec, checkpoint: Checkpoint) -> None:
    problems = []
    before = parse_run_spec(parent.spec)
    for section in ("config", "environment_config"):
        was, now = getattr(before, section), getattr(spec, section)
        for name in sorted(marked(type(now), "shape")):
            if getattr(now, name) != getattr(was, name):
                message = f"the checkpoint's network is made for {getattr(was, name)!r}: a fork keeps it"
                problems.append(FieldProblem(field=f"{section}.{name}", message=message))
    for name in ("agent_steps", "wall_time_s", "score"):
        bound, done = getattr(spec.stop, name), getattr(checkpoint, name)
        if bound is not None and done is not None and done >= bound:
            message = f"the checkpoint is at {done:,.10g} already: give a larger bound"
            problems.append(FieldProblem(field=f"stop.{name}", message=message))
    if problems:
        raise Invalid(problems)
