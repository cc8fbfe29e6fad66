"""Forks: new runs that start from a checkpoint of another run, with changes."""

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db import Checkpoint, Run
from backend.db.base import new_run_id
from backend.db.engine import UnitOfWork, writing
from backend.fleet.storage import service as storage
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Conflict, Invalid, Unavailable
from backend.runs.checkpoints import repository as checkpoint_rows
from backend.runs.checkpoints import service as checkpoints
from backend.runs.forks.schemas import ForkRequest
from backend.runs.runs import external
from backend.runs.runs import service as runs
from backend.specs.fields import marked_fields
from backend.specs.names import fork_name
from backend.specs.problems import FieldProblem, quoted
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.run_fields import SCORE_EPISODES


def create(
    work: UnitOfWork,
    engine: Engine,
    store: ArtifactStore,
    run_id: str,
    request: ForkRequest,
    created_by: str,
) -> Run:
    """Create the fork, with a copy of the checkpoint as its first one.

    Args:
        work: written only after the file is copied, which may take a while.
        engine: the database, to record that the copy is expected.
        store: the artifact store.
        run_id: the parent.
        request: the changes.
        created_by: id of the user.

    Raises:
        NotFound: there is no such parent.
        Conflict: it is an external run, has no checkpoint, or its file does not exist.
        InvalidSpec: the changes do not fit the parent's settings.
        Invalid: the checkpoint is not of the parent, or does not fit the changes.
        Unavailable: the copy took too long.
    """
    parent = runs.get(work.read, run_id)
    before = external.trainable_spec(parent, "fork")
    checkpoint = _checkpoint(work.read, parent, request.checkpoint)
    spec = _spec(parent, before, request)
    _check_start(before, spec, checkpoint)
    fork_id, file = new_run_id(), f"a0-s{checkpoint.agent_steps:012d}.pt"
    # If this process dies before the fork is committed, clean-up deletes the copy.
    with writing(engine) as expecting:
        storage.expect_file(expecting, fork_id, "checkpoints", file)
    try:
        store.copy(run_id, "checkpoints", checkpoint.file, fork_id, file)
    except FileNotFoundError:
        raise Conflict(f"the file of checkpoint {checkpoint.id} does not exist") from None
    reason = f"forked from {parent.name} at {checkpoint.agent_steps:,} agent steps"
    run = runs.create(
        work.write, spec, created_by=created_by, run_id=fork_id, start=checkpoint, reason=reason
    )
    run.departures = parent.departures
    if not storage.keep_file(work.write, fork_id, "checkpoints", file):
        raise Unavailable("the checkpoint took too long to copy: try again", retry_after_s=1)
    checkpoints.add_copy(work.write, checkpoint, fork_id, file)
    return run


def _checkpoint(session: Session, parent: Run, checkpoint_id: str | None) -> Checkpoint:
    if checkpoint_id is None:
        latest = checkpoint_rows.latest(session, parent.id)
        if latest is None:
            raise Conflict(f"the run is {parent.state} and has no checkpoint to fork from")
        return latest
    checkpoint = checkpoint_rows.get(session, checkpoint_id)
    if checkpoint is None or checkpoint.run_id != parent.id or checkpoint.removed:
        raise Invalid.field(
            "checkpoint", "this run has no such checkpoint; without one, the fork starts from the latest"
        )
    return checkpoint


def _spec(parent: Run, before: RunSpec, request: ForkRequest) -> RunSpec:
    changes: dict[str, Any] = request.model_dump(exclude={"checkpoint"}, exclude_none=True)
    if "host" in request.model_fields_set:
        changes["host"] = request.host
    changes["package"] = None  # a fork is of the version that is installed
    for section in ("config", "environment_config"):
        changes[section] = parent.spec[section] | changes.get(section, {})
    spec = parse_run_spec(parent.spec | changes)
    if request.name is not None:
        return spec
    return spec.model_copy(update={"name": fork_name(parent.name, before, spec)})


def _check_start(before: RunSpec, spec: RunSpec, checkpoint: Checkpoint) -> None:
    problems = []
    for section in ("config", "environment_config"):
        was, now = getattr(before, section), getattr(spec, section)
        for name in sorted(marked_fields(type(now), "shape")):
            if getattr(now, name) != getattr(was, name):
                built_for = quoted(getattr(was, name))
                message = f"cannot change in a fork: the checkpoint's network was built for {built_for}"
                problems.append(FieldProblem(field=f"{section}.{name}", message=message))
    reached = {
        "agent_steps": f"has {checkpoint.agent_steps:,} agent steps",
        "wall_time_s": f"has {checkpoint.wall_time_s:,.10g} s of training",
        "score": f"has the score {checkpoint.score or 0:,.10g}",
    }
    for name, what in reached.items():
        bound, done = getattr(spec.stop, name), getattr(checkpoint, name)
        if name == "score" and checkpoint.episodes < SCORE_EPISODES:
            continue  # the fork would train on
        if bound is not None and done is not None and done >= bound:
            message = f"the checkpoint {what} already: set a higher limit"
            problems.append(FieldProblem(field=f"stop.{name}", message=message))
    if problems:
        raise Invalid(problems)
