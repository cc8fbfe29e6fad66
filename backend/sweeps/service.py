"""Actions on sweeps, and what their pages show."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.comparisons.schemas import EstimateOut
from backend.db import Sweep, SweepConfiguration
from backend.errors import Conflict, Invalid, NotFound
from backend.principals import Principal
from backend.runs import grid
from backend.runs import service as runs
from backend.specs.problems import FieldProblem, InvalidSpec, problems_of, quoted
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from backend.specs.sweep import SweepSpec
from backend.statistics.estimates import interquartile_mean, median
from backend.sweeps import repository, sampling
from backend.sweeps.planning import Member
from backend.sweeps.repository import MemberRun
from backend.sweeps.schemas import (
    Best,
    ConfigurationOut,
    MemberOut,
    SweepChanges,
    SweepDetail,
    SweepExtension,
    SweepOut,
)
from backend.text import UNSTORABLE, unstorable_paths

_SHOWN_PROBLEMS = 20


def create(session: Session, spec: SweepSpec, principal: Principal) -> Sweep:
    """Validate every configuration and store the sweep.

    Raises:
        Invalid: with one problem per invalid field; nothing is stored.
    """
    _check(spec)
    if "custom" in spec.run:
        raise Invalid.field("run.custom", "no such field")
    try:
        request = runs.described(session, runs.accepted(session, dict(spec.run)))
    except InvalidSpec as error:
        raise Invalid(_located(spec, error.problems)) from None
    # In the runs' request, so that a later name of the sweep does not part them.
    spec = spec.model_copy(update={"run": request | {"group": request.get("group") or spec.name}})
    sweep = repository.create(session, spec, _configurations(spec), created_by=principal.id)
    repository.reconcile(session, sweep.id)
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


def change(session: Session, sweep_id: str, changes: SweepChanges) -> Sweep:
    """Change fields that can change in any state."""
    sweep = get(session, sweep_id, for_update=True)
    values = changes.model_dump(exclude_none=True)
    if values:
        repository.change(session, sweep, values)
    return sweep


def stop(session: Session, sweep_id: str) -> Sweep:
    """Start no further run, and stop those that have not ended.

    Raises:
        Conflict: the sweep has ended.
    """
    sweep = get(session, sweep_id, for_update=True)
    if sweep.state != "running":
        raise Conflict(f"the sweep is {sweep.state}: it has already ended")
    repository.end(session, sweep, "stopped", "stopped on request")
    members = repository.members(session, sweep, SweepSpec.model_validate(sweep.spec))
    # In the order of ids, as bulk actions lock runs.
    for run_id in sorted(one.run_id for one in members if one.run_id and not one.member.has_ended):
        with suppress(Conflict, NotFound):  # it has ended, or been deleted, in the meantime
            runs.stop(session, run_id, kill=False)
    repository.touch(session, sweep)
    return sweep


def retry(session: Session, sweep_id: str) -> Sweep:
    """Queue failed and stopped runs again, start deleted runs again, and continue the sweep.

    Raises:
        Conflict: there is nothing to do, or some runs are still stopping.
    """
    sweep = get(session, sweep_id, for_update=True)
    n_retried = _retry_members(session, sweep)
    if not n_retried and sweep.state != "stopped":
        raise Conflict("none of its runs has failed, was stopped or was deleted")
    repository.end(session, sweep, "running", f"{n_retried} runs retried")
    repository.touch(session, sweep)
    return sweep


def extend(session: Session, sweep_id: str, extension: SweepExtension) -> Sweep:
    """Add seeds, configurations or values, or replace the budget, and continue the sweep.

    The runs of a stopped sweep are queued again.

    Raises:
        Invalid: the extended sweep is not valid; nothing is changed.
        Conflict: some of its runs are still stopping.
    """
    sweep = get(session, sweep_id, for_update=True)
    if not extension.model_fields_set:
        raise Invalid.field("body", f"must have at least one of {', '.join(SweepExtension.model_fields)}")
    before = SweepSpec.model_validate(sweep.spec)
    changes = extension.model_dump(mode="json", exclude_unset=True, exclude={"values"})
    if before.sampler == "grid" and extension.n_configurations is not None:
        raise Invalid.field("n_configurations", "a grid has all combinations: add values instead")
    for name, floor in (("max_seeds", before.max_seeds), ("n_configurations", before.n_configurations)):
        if changes.get(name) is not None and floor is not None and changes[name] < floor:
            raise Invalid.field(name, f"must be at least {floor}, as now")
    space = dict(sweep.spec["space"])
    for path, added in (extension.values or {}).items():
        if path not in space or space[path].get("values") is None:
            raise Invalid.field(f"values.{path}", "is not a setting with a list of values in this sweep")
        space[path] = space[path] | {"values": [*space[path]["values"], *added]}
    try:
        spec = SweepSpec.model_validate(before.model_dump(mode="json") | changes | {"space": space})
    except ValidationError as error:
        raise Invalid(problems_of(error)) from None
    _check(spec)
    configurations = _configurations(spec)
    known = [one.settings for one in repository.configurations(session, sweep_id)]
    new = [settings for settings in configurations if settings not in known]
    if spec.n_configurations is not None:
        new = new[: max(0, spec.n_configurations - len(known))]
    if extension.values and not new:
        raise Invalid.field("values", "would add no configuration: raise n_configurations too")
    if sweep.state == "stopped":
        _retry_members(session, sweep)
    repository.add_configurations(session, sweep, new)
    repository.end(session, sweep, "running", "extended")
    repository.change(session, sweep, spec.model_dump(mode="json"))
    return sweep


def delete(session: Session, sweep_id: str) -> None:
    """Delete an ended sweep; its runs stay.

    Raises:
        Conflict: it is running.
    """
    sweep = get(session, sweep_id, for_update=True)
    if sweep.state == "running":
        raise Conflict("the sweep is running: stop it before you delete it")
    repository.remove(session, sweep)


def summaries(session: Session, sweeps: Sequence[Sweep]) -> list[SweepOut]:
    """Sweeps as in lists."""
    counts = repository.counts(session, [one.id for one in sweeps])
    return [_summary(one, *counts[one.id]) for one in sweeps]


def detail(session: Session, sweep: Sweep) -> SweepDetail:
    """A sweep with its configurations and their scores."""
    spec = SweepSpec.model_validate(sweep.spec)
    own: dict[int, list[MemberRun]] = {}
    for one in repository.members(session, sweep, spec):
        own.setdefault(one.member.configuration, []).append(one)
    found = [
        _configuration(one, own.get(one.number, [])) for one in repository.configurations(session, sweep.id)
    ]
    (summary,) = summaries(session, [sweep])
    scored = [one for one in found if one.iqm is not None]
    best = max(scored, key=lambda one: (not one.eliminated, one.iqm), default=None)
    n_runs = sum(len(one.runs) for one in found)
    return SweepDetail(
        **summary.model_dump(),
        configurations=found,
        best=None if best is None else Best(number=best.number, settings=best.settings, iqm=best.iqm),
        n_not_needed=sum(spec.max_seeds - len(one.runs) for one in found if one.eliminated and one.n)
        if spec.racing is not None
        else 0,
        n_planned=max(n_runs, len(found) * spec.max_seeds),
    )


def _retry_members(session: Session, sweep: Sweep) -> int:
    """Queue failed and stopped runs again, and forget deleted ones, which the reconciler then starts again.
    Configurations that are worse than another stay eliminated, and their runs as they are.

    Returns:
        How many.
    """
    members = repository.members(session, sweep, SweepSpec.model_validate(sweep.spec))
    stopping = sum(one.member.state == RunState.STOPPING for one in members)
    if stopping:
        raise Conflict(f"{stopping} of its runs are still stopping: try again when they have stopped")
    scored = {one.member.configuration for one in members if one.member.counted is not None}
    eliminated = {one.number for one in repository.configurations(session, sweep.id) if one.eliminated}
    lost = {one.member.configuration for one in members} & scored & eliminated
    retried, deleted = set(), set()
    for one in sorted(members, key=lambda one: one.run_id or ""):
        if one.member.configuration in lost:
            continue
        if one.run_id is None:
            deleted.add((one.member.configuration, one.member.seed))
        elif one.member.state in (RunState.FAILED, RunState.STOPPED):
            with suppress(Conflict, NotFound):  # it has just been resumed or deleted
                runs.resume(session, one.run_id)
                retried.add((one.member.configuration, one.member.seed))
    repository.forget_members(session, sweep.id, deleted)
    repository.readmit(session, sweep.id, {configuration for configuration, _ in retried | deleted} - scored)
    return len(retried | deleted)


def _check(spec: SweepSpec) -> None:
    problems = spec.field_problems()
    if problems:
        raise Invalid([FieldProblem(field=field, message=message) for field, message in problems.items()])


def _configurations(spec: SweepSpec) -> list[sampling.ConfigValues]:
    """The configurations of a sweep whose runs are all valid.

    Raises:
        Invalid: with the problems of the configurations' runs.
    """
    paths = unstorable_paths(spec.model_dump(mode="json"))
    if paths:
        raise Invalid([FieldProblem(field=path, message=UNSTORABLE) for path in paths])
    configurations = sampling.configurations(spec)
    found: dict[tuple[str, str], FieldProblem] = {}
    for settings in configurations:
        try:
            parse_run_spec(grid.merged(spec.run, settings))
        except InvalidSpec as error:
            found |= {(one.field, one.message): one for one in _located(spec, error.problems)}
            if len(found) >= _SHOWN_PROBLEMS:
                break
    if found:
        raise Invalid([*found.values()][:_SHOWN_PROBLEMS])
    if spec.objective == "evaluation":
        _check_evaluations(spec, configurations[0])
    return configurations


def _check_evaluations(spec: SweepSpec, settings: sampling.ConfigValues) -> None:
    """Refuse evaluations that the runs do not make."""
    run_spec = parse_run_spec(grid.merged(spec.run, settings))
    if run_spec.config.evaluation_episodes == 0:
        raise Invalid.field("objective", "the runs are not evaluated: config.evaluation_episodes is 0")
    if spec.protocol not in (None, run_spec.evaluation_protocol):
        message = f"the runs are evaluated under {run_spec.evaluation_protocol}, got {quoted(spec.protocol)}"
        raise Invalid.field("protocol", f"{message}: set run.config.evaluation_protocol")


def _located(spec: SweepSpec, problems: Sequence[FieldProblem]) -> list[FieldProblem]:
    """Problems of a run's request, with their paths in the sweep's."""
    return [
        FieldProblem(
            field=f"space.{one.field}" if one.field in spec.space else f"run.{one.field}", message=one.message
        )
        for one in problems
    ]


def _summary(sweep: Sweep, n_configurations: int, n_active: int, states: dict[str, int]) -> SweepOut:
    return SweepOut(
        id=sweep.id,
        name=sweep.name,
        notes=sweep.spec["notes"],
        algorithm=str(sweep.spec["run"].get("algorithm")),
        environment=str(sweep.spec["run"].get("environment")),
        state=sweep.state,
        state_reason=sweep.state_reason,
        created_at=sweep.created_at,
        created_by=sweep.created_by,
        ended_at=sweep.ended_at,
        revision=sweep.revision,
        looks=sweep.looks,
        n_configurations=n_configurations,
        n_active=n_active,
        runs=dict(states),
        spec=SweepSpec.model_validate(sweep.spec),
    )


def _configuration(row: SweepConfiguration, members: Sequence[MemberRun]) -> ConfigurationOut:
    scores = np.array([one.member.counted for one in members if one.member.counted is not None], "f8")
    return ConfigurationOut(
        number=row.number,
        settings=row.settings,
        eliminated=row.eliminated,
        n=len(scores),
        iqm=interquartile_mean(scores) if len(scores) else None,
        median=EstimateOut.of(median(scores)) if len(scores) else None,
        runs=[
            MemberOut(
                run=one.run_id, seed=one.member.seed, state=_state(one.member), score=one.member.counted
            )
            for one in members
        ],
    )


def _state(member: Member) -> str:
    return "deleted" if member.state is None else member.state.value
