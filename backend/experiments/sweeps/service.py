"""The life of a sweep: what users may do with it, and the reconciler that starts what it needs next."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Sweep, SweepConfiguration
from backend.db.base import new_id
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.experiments.sweeps import configurations, repository
from backend.experiments.sweeps.planning import Plan, StoredMember, plan
from backend.experiments.sweeps.sampling import ConfigValues
from backend.platform.errors import Conflict, Invalid, NotFound, Overwritten
from backend.platform.principals import Principal
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.runs.runs.grid import merge_settings
from backend.specs.names import grid_name
from backend.specs.problems import InvalidSpec, problems_of
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.states import RunState
from backend.specs.sweep import SweepSpec, SweepState

MAX_STARTS = 20
"""Runs started in one transaction, so that other writers wait for a moment only."""

EXTENSIBLE = ("max_seeds", "n_configurations", "values", "budget")
"""What of a sweep can be extended."""


def create(session: Session, writing: Session, spec: SweepSpec, principal: Principal) -> Sweep:
    """Validate every configuration, store the sweep and start its first runs.

    Args:
        session: a session to read with.
        writing: a session to write with; it takes the write lock only after the validation, which may take a
            while.
        spec: the sweep.
        principal: who sends it.

    Raises:
        Invalid: with one problem per invalid field; nothing is stored.
    """
    configurations.check(spec)
    request = configurations.request_of_runs(session, spec)
    # In the runs' request, so that all runs stay in one group if the sweep is renamed.
    spec = spec.model_copy(update={"run": request | {"group": request.get("group") or spec.name}})
    of_sweep = configurations.of(spec)
    spec = configurations.pinned(session, spec, of_sweep[0])
    sweep = Sweep(
        id=new_id(),
        created_at=database_now(writing),
        created_by=principal.id,
        name=spec.name,
        spec=spec.model_dump(mode="json"),
        state="running",
        state_reason="created",
        looks=0,
        revision=0,
    )
    repository.add(writing, sweep)
    repository.add_configurations(writing, sweep, of_sweep)
    _touch(writing, sweep)
    reconcile(writing, sweep.id)
    return sweep


def get(session: Session, sweep_id: str, *, for_update: bool = False) -> Sweep:
    """The sweep.

    Raises:
        NotFound: there is no such sweep.
    """
    sweep = repository.get(session, sweep_id, for_update=for_update)
    if sweep is None:
        raise NotFound(f"sweep {sweep_id} does not exist or has been deleted")
    return sweep


def change(session: Session, sweep_id: str, changes: Mapping[str, Any]) -> Sweep:
    """Change fields that can change in any state. Null means no change.

    Raises:
        Overwritten: a field has another value than the one in `expected`.
    """
    sweep = get(session, sweep_id, for_update=True)
    Overwritten.check(sweep.spec, changes.get("expected") or {})
    values = {name: value for name, value in changes.items() if name != "expected" and value is not None}
    if values:
        _change(session, sweep, values)
    return sweep


def stop(session: Session, sweep_id: str) -> Sweep:
    """Start no further run, and stop those that have not ended.

    Raises:
        Conflict: the sweep has ended.
    """
    sweep = get(session, sweep_id, for_update=True)
    if sweep.state != "running":
        raise Conflict(f"the sweep is {sweep.state}: it has already ended")
    _set_state(session, sweep, "stopped", "stopped on request")
    members = repository.members(session, sweep, SweepSpec.model_validate(sweep.spec))
    open_runs = [member.run_id for member in members if member.run_id and not member.member.has_ended]
    for run_id in sorted(open_runs):  # in the order of ids, as bulk actions lock runs
        with suppress(Conflict, NotFound):  # it has ended, or been deleted, in the meantime
            actions.stop(session, run_id, kill=False)
    _touch(session, sweep)
    return sweep


def retry(session: Session, sweep_id: str) -> Sweep:
    """Queue failed and stopped runs again, start others in place of deleted and changed ones, and continue
    the sweep.

    Raises:
        Conflict: there is nothing to do, or some runs are still stopping.
    """
    sweep = get(session, sweep_id, for_update=True)
    n_retried, n_left = _retry_members(session, sweep)
    if not n_retried and sweep.state != "stopped":
        raise Conflict(
            "all of its runs that failed, or were stopped, deleted or changed, are of configurations that "
            "are worse than another: they stay as they are"
            if n_left
            else "none of its runs has failed, was stopped, deleted or changed"
        )
    _set_state(session, sweep, "running", f"{n_retried} runs retried")
    _touch(session, sweep)
    return sweep


def extend(session: Session, sweep_id: str, extension: Mapping[str, Any]) -> Sweep:
    """Add seeds, configurations or values, or replace the budget, and continue the sweep.

    The runs of a stopped sweep are queued again.

    Args:
        session: a writing session.
        sweep_id: the sweep.
        extension: new values of some of `EXTENSIBLE`; under `values`, further ones by field, of settings that
            vary over a list of values.

    Raises:
        Invalid: the extended sweep is not valid, or a start set of its evaluations has been deleted; nothing
            is changed.
        Conflict: some of its runs are still stopping.
    """
    sweep = get(session, sweep_id, for_update=True)
    if not extension:
        raise Invalid.field("body", f"must have at least one of {', '.join(EXTENSIBLE)}")
    before = SweepSpec.model_validate(sweep.spec)
    changes = {name: value for name, value in extension.items() if value is not None}
    values = changes.pop("values", None) or {}
    if before.sampler == "grid" and changes.get("n_configurations") is not None:
        raise Invalid.field("n_configurations", "a grid has all combinations: add values instead")
    for name, floor in (("max_seeds", before.max_seeds), ("n_configurations", before.n_configurations)):
        if changes.get(name) is not None and floor is not None and changes[name] < floor:
            raise Invalid.field(name, f"must be at least {floor}, as now")
    space = dict(sweep.spec["space"])
    for path, added in values.items():
        if path not in space or space[path].get("values") is None:
            raise Invalid.field(f"values.{path}", "is not a setting with a list of values in this sweep")
        space[path] = space[path] | {"values": [*space[path]["values"], *added]}
    try:
        spec = SweepSpec.model_validate(before.model_dump(mode="json") | changes | {"space": space})
    except ValidationError as error:
        raise Invalid(problems_of(error)) from None
    configurations.check(spec)
    of_sweep = configurations.of(spec)
    spec = configurations.pinned(session, spec, of_sweep[0])
    known = [row.settings for row in repository.configurations(session, sweep_id)]
    new = [settings for settings in of_sweep if settings not in known]
    if spec.n_configurations is not None:
        new = new[: max(0, spec.n_configurations - len(known))]
    if values and not new:
        raise Invalid.field("values", "would add no configuration: raise n_configurations too")
    if sweep.state == "stopped":
        _retry_members(session, sweep)
    repository.add_configurations(session, sweep, new)
    _set_state(session, sweep, "running", "extended")
    _change(session, sweep, spec.model_dump(mode="json"))
    return sweep


def delete(session: Session, sweep_id: str) -> None:
    """Delete an ended sweep; its runs stay.

    Raises:
        Conflict: it is running.
    """
    sweep = get(session, sweep_id, for_update=True)
    if sweep.state == "running":
        raise Conflict("the sweep is running: stop it before you delete it")
    record_change(session, "sweep", sweep.id, state="deleted")
    repository.remove(session, sweep)


def running(session: Session) -> list[str]:
    """Ids of the running sweeps."""
    return repository.running(session)


def is_due(session: Session, sweep_id: str) -> bool:
    """Whether a running sweep has something to do. Reads only."""
    sweep = repository.get(session, sweep_id)
    if sweep is None or sweep.state != "running":
        return False
    _, due, waiting = _plan(session, sweep)
    return bool(waiting) or due.changes(sweep.looks)


def reconcile(session: Session, sweep_id: str) -> bool:
    """Do what a running sweep needs next, at most `MAX_STARTS` runs of it; return whether anything was done.

    The sweep's row is locked, so two processes never start the same run.
    """
    sweep = repository.get(session, sweep_id, for_update=True)
    if sweep is None or sweep.state != "running":
        return False
    spec, due, waiting = _plan(session, sweep)
    if not waiting and not due.changes(sweep.looks):
        return False
    by_number = {row.number: row for row in repository.configurations(session, sweep_id)}
    for member in sorted(waiting, key=lambda member: member.run_id or ""):  # as bulk actions lock runs
        _resume_member(session, sweep_id, member, by_number[member.member.configuration])
    for number, reason in due.eliminated.items():
        by_number[number].eliminated = reason
    sweep.looks = due.looks
    for number, seed in due.start[:MAX_STARTS]:
        configuration = by_number[number]
        try:
            run_spec = member_spec(spec, configuration.settings, seed)
        except InvalidSpec as error:  # stored by another version, whose settings were others
            configuration.eliminated = f"its settings are no longer valid: {error}"
            continue
        try:
            run = runs.create(
                session, run_spec, created_by=sweep.created_by, reason=f"started by {sweep.name}"
            )
        except Invalid as error:  # its start set has been deleted
            configuration.eliminated = str(error)
            continue
        repository.add_member(session, sweep_id, number, seed, run.id)
    if due.finished is not None:
        _set_state(session, sweep, "finished", due.finished)
    _touch(session, sweep)
    return True


def _resume_member(
    session: Session, sweep_id: str, member: StoredMember, configuration: SweepConfiguration
) -> None:
    """Queue the run of a waiting member."""
    repository.stop_waiting(session, sweep_id, member.member.configuration, member.member.seed)
    if member.run_id is None:
        return
    try:
        actions.resume(session, member.run_id)
    except Invalid as error:  # its start set has been deleted
        configuration.eliminated = str(error)
    except (Conflict, NotFound):  # it has been resumed or deleted in the meantime
        pass


def member_spec(spec: SweepSpec, settings: ConfigValues, seed: int) -> RunSpec:
    """The specification of a member's run.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    run_spec = parse_run_spec(merge_settings(spec.run, settings) | {"seed": seed})
    return run_spec.model_copy(update={"name": grid_name(run_spec, [*settings], spec.max_seeds)})


def _plan(session: Session, sweep: Sweep) -> tuple[SweepSpec, Plan, list[StoredMember]]:
    """The sweep's specification, what it does next, and the waiting members whose runs it resumes."""
    spec = SweepSpec.model_validate(sweep.spec)
    rows = repository.configurations(session, sweep.id)
    active = [row.number for row in rows if row.eliminated is None]
    stored = repository.members(session, sweep, spec)
    n_open = sum(member.member.state is not None and not member.member.has_ended for member in stored)
    waiting = [member for member in stored if member.waiting and member.run_id is not None]
    # Runs that are to be resumed count as open: they come first, and the budget has paid for them.
    members = [
        replace(member.member, state=RunState.QUEUED) if member in waiting else member.member
        for member in stored
    ]
    elapsed_s = (database_now(session) - sweep.created_at).total_seconds()
    due = plan(spec, active, members, looks=sweep.looks, elapsed_s=elapsed_s)
    return spec, due, waiting[: max(0, spec.concurrency - n_open)]


def _retry_members(session: Session, sweep: Sweep) -> tuple[int, int]:
    """Queue failed and stopped runs again, as many as may be open at a time and the others in their turn, and
    forget deleted and changed ones, which the reconciler starts anew. Configurations that are worse than
    another stay eliminated, and their runs as they are.

    Returns:
        The number of runs that start again, and that of the failed, stopped, deleted or changed ones of
        eliminated configurations.
    """
    spec = SweepSpec.model_validate(sweep.spec)
    members = repository.members(session, sweep, spec)
    stopping = sum(member.member.state == RunState.STOPPING for member in members)
    if stopping:
        raise Conflict(f"{stopping} of its runs are still stopping: try again when they have stopped")
    scored = {member.member.configuration for member in members if member.member.counted is not None}
    rows = repository.configurations(session, sweep.id)
    eliminated = {row.number for row in rows if row.eliminated}
    worse = {member.member.configuration for member in members} & scored & eliminated
    n_open = sum(member.member.state is not None and not member.member.has_ended for member in members)
    retried: set[tuple[int, int]] = set()
    waiting, lost, n_left = set(), set(), 0
    for member in sorted(members, key=lambda member: member.run_id or ""):
        key = (member.member.configuration, member.member.seed)
        is_lost = member.run_id is None or (member.member.is_changed and member.member.has_ended)
        if not is_lost and member.member.state not in (RunState.FAILED, RunState.STOPPED):
            continue
        if member.member.configuration in worse:
            n_left += 1
        elif member.run_id is None or is_lost:
            lost.add(key)
        elif n_open + len(retried) >= spec.concurrency:
            waiting.add(key)
        else:
            with suppress(Conflict, NotFound):  # it has just been resumed or deleted
                actions.resume(session, member.run_id)
                retried.add(key)
    repository.delete_members(session, sweep.id, lost)
    repository.mark_waiting(session, sweep.id, waiting)
    again = retried | waiting | lost
    readmitted = {configuration for configuration, _ in again} - scored
    repository.clear_eliminated(session, sweep.id, readmitted)
    return len(again), n_left


def _set_state(session: Session, sweep: Sweep, state: SweepState, reason: str) -> None:
    """End a locked sweep, or let it run again."""
    sweep.state = state
    sweep.state_reason = reason
    sweep.ended_at = None if state == "running" else database_now(session)


def _change(session: Session, sweep: Sweep, changes: Mapping[str, Any]) -> None:
    """Change fields of a locked sweep, in its columns and in its spec."""
    sweep.spec = {**sweep.spec, **changes}
    sweep.name = sweep.spec["name"]
    _touch(session, sweep)


def _touch(session: Session, sweep: Sweep) -> None:
    """Bump the revision of a locked sweep; the change is published after the commit."""
    sweep.revision += 1
    record_change(session, "sweep", sweep.id, state=sweep.state)
    session.flush()
