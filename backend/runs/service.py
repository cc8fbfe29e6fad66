"""Actions on runs and their preconditions."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.clock import database_now
from backend.errors import Conflict, Forbidden, Invalid, NotFound
from backend.hosts import repository as hosts
from backend.principals import Principal
from backend.runs import deletion, external, fields, filters, repository
from backend.runs.conditions import has_setting, unrecorded_metrics
from backend.runs.filters import All, Either, Node, Term, Word
from backend.runs.grid import combinations, given_seeds, grid_problems, seed_problems, seeds_of, with_seed
from backend.runs.schemas import RunChanges
from backend.specs.annealing import Annealing, annealing_notice, with_annealing
from backend.specs.fields import ENVIRONMENT_PREFIX
from backend.specs.problems import FieldProblem, InvalidSpec, quoted
from backend.specs.run import RunSpec, StopSpec, parse_run_spec
from backend.specs.run_fields import CALLBOARD, EXTERNAL
from backend.specs.states import ENDED, LEASED, RunState
from backend.text import UNSTORABLE, unstorable_paths


def create(session: Session, body: dict[str, Any], principal: Principal) -> list[Run]:
    """Validate a request and create its runs, one per combination of its grid's values and seed.

    Raises:
        InvalidSpec: with one problem per invalid field; nothing is stored.
        Forbidden: the token may only create external runs.
    """
    origin = body.get("origin")
    if origin == EXTERNAL:
        return [external.create(session, body, principal)]
    if principal.only_external_runs:
        raise Forbidden(f"this token may only create external runs: set origin to {EXTERNAL}")
    if origin not in (None, CALLBOARD):
        message = f"must be {CALLBOARD} or {EXTERNAL}, got {quoted(origin)}"
        raise InvalidSpec([FieldProblem(field="origin", message=message)])
    return [repository.create(session, spec, created_by=principal.id) for spec in specs(session, body)]


def accepted(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """The request without its origin, and without a null seed, which generated clients send.

    Raises:
        InvalidSpec: the hosts that list its custom environment cannot use it.
    """
    environment = body.get("environment")
    if isinstance(environment, str) and environment.startswith(ENVIRONMENT_PREFIX):
        reason = hosts.refused_environments(session).get(environment)
        if reason is not None and environment not in hosts.custom_environments(session):
            raise InvalidSpec([FieldProblem(field="environment", message=reason)])
    return {
        name: value
        for name, value in body.items()
        if name != "origin" and (name != "seed" or value is not None)
    }


def get(session: Session, run_id: str, *, for_update: bool = False) -> Run:
    """The run.

    Raises:
        NotFound: there is no such run.
    """
    run = repository.get(session, run_id, for_update=for_update)
    if run is None:
        raise NotFound(f"run {run_id} does not exist or has been deleted", code="run_not_found")
    return run


def change(session: Session, run_id: str, changes: RunChanges) -> Run:
    """Change fields that can change in any state."""
    run = get(session, run_id, for_update=True)
    values = changes.model_dump(mode="json", exclude_unset=True)
    if "group" in values:
        values["group"] = values["group"] or None
    # Null means "no change" for fields that cannot be empty.
    values = {name: value for name, value in values.items() if name == "group" or value is not None}
    if values:
        repository.change(session, run, values)
    return run


def archive(session: Session, run_id: str, archived: bool) -> Run:
    """Archive or unarchive a run."""
    run = get(session, run_id, for_update=True)
    if archived and run.state not in ENDED:
        raise Conflict(f"the run is {run.state}: stop it before you archive it")
    repository.change(session, run, {"archived": archived})
    return run


def stop(session: Session, run_id: str, *, kill: bool) -> Run:
    """Request the end of a run: gracefully with a final checkpoint, or immediately. Repeated requests are
    harmless.

    Raises:
        Conflict: it has already ended, or it is an external run, which cannot be killed.
    """
    run = get(session, run_id, for_update=True)
    if kill:
        external.refuse(run, "kill")
    state = RunState(run.state)
    if state in ENDED:
        raise Conflict(f"the run is {state}: it has already ended")
    if state not in LEASED:
        repository.transition(session, run, RunState.STOPPED, f"stopped while {state}")
        return run
    repository.request_stop(session, run, kill=kill)
    return run


def resume(
    session: Session, run_id: str, bounds: StopSpec | None = None, annealing: Annealing | None = None
) -> Run:
    """Queue an ended run again; it resumes from its latest intact checkpoint.

    A stopped or failed run at its limit completes what is missing, such as its last evaluation, and finishes,
    unless its limits or schedule change. The log states what new limits do to an annealed learning rate.

    Raises:
        Conflict: it has not ended, it is external, or a limit is reached of a run that has finished or whose
            limits or schedule change.
        InvalidSpec: the new limits, or `annealing`, do not fit the run's settings.
    """
    run = get(session, run_id, for_update=True)
    external.refuse(run, "resume")
    state = RunState(run.state)
    if state not in ENDED:
        raise Conflict(f"the run is {state}: only an ended run can be resumed")
    notice = None
    may_complete = state != RunState.FINISHED
    if bounds is not None or annealing is not None:
        before = parse_run_spec(run.spec)
        stop = before.stop if bounds is None else bounds
        changed = parse_run_spec(run.spec | {"stop": stop.model_dump(exclude_none=True)})
        spec = with_annealing(before, changed, annealing)
        changes = spec.model_dump(mode="json", include={"stop", "annealing_agent_steps"})
        repository.change(session, run, changes)
        notice = annealing_notice(before, spec, run.agent_steps)
        may_complete = may_complete and spec == before
    reached = _reached(run)
    if reached and not may_complete:
        errors = [FieldProblem(field=f"stop.{name}", message=message) for name, message in reached]
        hint = "" if state == RunState.FINISHED else "; without changes it completes what is missing"
        raise Conflict(f"the run is {state}: {reached[0][1]}{hint}", errors)
    run.error = None
    run.attempts_without_checkpoint = 0
    run.host_deaths = 0
    run.archived = False
    repository.transition(session, run, RunState.QUEUED, "resumed")
    if notice is not None:
        line = {"time": database_now(session), "level": "warning", "message": notice}
        repository.add_log_lines(session, run.id, run.attempt, [line])
    return run


def delete(session: Session, run_id: str, *, restorable: bool = False) -> None:
    """Delete a run without a lease: permanently, or so that it can be restored for a while.

    Raises:
        Conflict: a worker holds its lease.
    """
    run = get(session, run_id, for_update=True)
    if run.state in LEASED:
        raise Conflict(f"the run is {run.state}: stop it before you delete it")
    if restorable:
        deletion.set_aside(session, run)
    else:
        repository.delete(session, run)


def restore(session: Session, run_id: str) -> Run:
    """Bring back a run that was deleted as restorable.

    Raises:
        NotFound: there is none, or the time for it has passed.
    """
    run = deletion.restore(session, run_id)
    if run is None:
        raise NotFound(f"run {run_id} cannot be restored: it was not deleted, or its files have been removed")
    return run


def listing(
    *,
    ids: Sequence[str] = (),
    states: Sequence[RunState],
    algorithms: Sequence[str],
    environments: Sequence[str],
    tags: Sequence[str],
    group: str | None,
    archived: bool | None,
    search: str | None,
    filter_text: str | None,
) -> Node:
    """One filter from the parameters of a list, all of which must match.

    Raises:
        Invalid: the filter is invalid.
    """
    parts: list[Node] = [
        Either(tuple(Term(field, "=", value) for value in values))
        for field, values in (
            ("id", ids),
            ("state", states),
            ("algorithm", algorithms),
            ("environment", environments),
        )
        if values
    ]
    parts += [Term("tag", "=", tag) for tag in tags]
    if group is not None:
        parts.append(Term("group", "=", group))
    if archived is not None:
        parts.append(Term("archived", "=", archived))
    if search:
        parts.append(Word(search))
    if filter_text:
        parts.append(parsed(filter_text))
    return All(tuple(parts))


def parsed(filter_text: str) -> Node:
    """A filter's tree.

    Raises:
        Invalid: the filter is invalid.
    """
    try:
        return filters.parse(filter_text)
    except filters.BadFilter as error:
        raise Invalid.field("filter", str(error)) from None


def check_compared(session: Session, node: Node) -> None:
    """Reject a filter by a metric that no run has recorded, or a setting that none has: it was mistyped.

    Raises:
        Invalid: there is no such metric or setting.
    """
    for field in sorted(filters.compared(node), key=lambda field: field.name):
        check_known(session, "filter", field)


def check_known(session: Session, parameter: str, field: fields.Field) -> None:
    """The same for one field of a parameter.

    Raises:
        Invalid: no run has this metric or setting.
    """
    if isinstance(field, fields.MetricField):
        for name in unrecorded_metrics(session, [field.name]):
            raise Invalid.field(parameter, f"no run has recorded the metric {quoted(name)}: check its name")
    if isinstance(field, fields.ConfigField) and field.kind == "any" and not has_setting(session, field):
        raise Invalid.field(parameter, fields.unknown(field.name))


def check_sort(session: Session, sort: str) -> None:
    """Reject a field that runs cannot be sorted by.

    Args:
        session: any session.
        sort: the field, without the sign of the direction.

    Raises:
        Invalid: it is unknown, or not sortable.
    """
    if sort in repository.SORTS:
        return
    try:
        field = fields.resolve(sort)
    except fields.UnknownField as error:
        raise Invalid.field("sort", str(error)) from None
    if isinstance(field, fields.RunField):
        raise Invalid.field("sort", f"runs cannot be sorted by {sort}")
    check_known(session, "sort", field)


def _reached(run: Run) -> Sequence[tuple[str, str]]:
    stop = run.spec["stop"]
    found = []
    if stop["agent_steps"] and run.agent_steps >= stop["agent_steps"]:
        message = (
            f"it has reached its limit of {stop['agent_steps']:,} agent steps ({run.agent_steps:,} "
            "completed): set a higher limit"
        )
        found.append(("agent_steps", message))
    if stop["wall_time_s"] and run.wall_time_s >= stop["wall_time_s"]:
        message = (
            f"it has reached its limit of {stop['wall_time_s']:,.10g} s of training "
            f"({round(run.wall_time_s, 1):,.10g} s completed): set a higher limit"
        )
        found.append(("wall_time_s", message))
    if stop["score"] is not None and run.score is not None and run.score >= stop["score"]:
        message = (
            f"it has reached its score limit of {stop['score']:g} (score {run.score:g}): raise or remove it"
        )
        found.append(("score", message))
    return found


def specs(session: Session, body: dict[str, Any]) -> list[RunSpec]:
    """One spec per combination of the grid's values and seed.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    body = accepted(session, body)
    rest = {name: value for name, value in body.items() if name not in ("seeds", "grid")}
    problems = [FieldProblem(field=path or "body", message=UNSTORABLE) for path in unstorable_paths(body)]
    problems += [
        FieldProblem(field=name, message="no such field")
        for name in ("custom", "own")  # only hosts describe their environments
        if rest.pop(name, None) is not None
    ]
    seeds = given_seeds(body)
    if seeds is not None:
        problems += seed_problems(seeds, "seed" in body)
    grid_errors = grid_problems(body)
    grid = {} if grid_errors else (body.get("grid") or {})
    known = {problem.field for problem in problems}
    found = []
    for request, combination in combinations(rest, grid):
        try:
            spec = parse_run_spec(described(session, request))
        except InvalidSpec as error:
            problems += [p for p in error.problems if p.field not in known and p not in problems]
            continue
        if not problems:
            found += [with_seed(spec, seed, seeds, combination) for seed in seeds_of(seeds, spec)]
    problems += grid_errors
    if problems:
        raise InvalidSpec(problems)
    return found


def described(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """The request with the description of a custom environment by its hosts."""
    environment = request.get("environment")
    if not isinstance(environment, str) or not environment.startswith(ENVIRONMENT_PREFIX):
        return request
    described, _ = hosts.custom_environments(session).get(environment, (None, []))
    return request | {"custom": None if described is None else described.model_dump(mode="json")}
