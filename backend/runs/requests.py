"""Requests that create runs: each is validated as a whole; then there is a run per seed and combination."""

from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.base import new_run_id
from backend.db.clock import database_now
from backend.errors import Forbidden
from backend.hosts import repository as hosts
from backend.principals import Principal
from backend.runs import external, service
from backend.runs.grid import combinations, given_seeds, grid_problems, seed_problems, seeds_of, with_seed
from backend.specs.external import parse_external_spec
from backend.specs.fields import ENVIRONMENT_PREFIX
from backend.specs.problems import FieldProblem, InvalidSpec, quoted
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.run_fields import CALLBOARD, EXTERNAL
from backend.specs.states import RunState
from backend.text import UNSTORABLE, unstorable_paths


def create(session: Session, body: dict[str, Any], principal: Principal) -> list[Run]:
    """Validate a request and create its runs, one per combination of its grid's values and seed.

    Raises:
        InvalidSpec: with one problem per invalid field; nothing is stored.
        Forbidden: the token may only create external runs.
    """
    origin = body.get("origin")
    if origin == EXTERNAL:
        return [_create_external(session, body, principal)]
    if principal.only_external_runs:
        raise Forbidden(f"this token may only create external runs: set origin to {EXTERNAL}")
    if origin not in (None, CALLBOARD):
        message = f"must be {CALLBOARD} or {EXTERNAL}, got {quoted(origin)}"
        raise InvalidSpec([FieldProblem(field="origin", message=message)])
    return [service.create(session, spec, created_by=principal.id) for spec in specs(session, body)]


def specs(session: Session, body: dict[str, Any]) -> list[RunSpec]:
    """One spec per combination of the grid's values and seed.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    body = normalise(session, body)
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
    result = []
    for request, combination in combinations(rest, grid):
        try:
            spec = parse_run_spec(describe_environment(session, request))
        except InvalidSpec as error:
            problems += [p for p in error.problems if p.field not in known and p not in problems]
            continue
        if not problems:
            result += [with_seed(spec, seed, seeds, combination) for seed in seeds_of(seeds, spec)]
    problems += grid_errors
    if problems:
        raise InvalidSpec(problems)
    return result


def normalise(session: Session, body: dict[str, Any]) -> dict[str, Any]:
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


def describe_environment(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """The request with the description of a custom environment by its hosts."""
    environment = request.get("environment")
    if not isinstance(environment, str) or not environment.startswith(ENVIRONMENT_PREFIX):
        return request
    description, _ = hosts.custom_environments(session).get(environment, (None, []))
    return request | {"custom": None if description is None else description.model_dump(mode="json")}


def _create_external(session: Session, body: dict[str, Any], principal: Principal) -> Run:
    """Validate a request and store its run, which is `running`.

    Raises:
        InvalidSpec: with one problem per invalid field; nothing is stored.
    """
    if unstorable := unstorable_paths(body):
        raise InvalidSpec([FieldProblem(field=path or "body", message=UNSTORABLE) for path in unstorable])
    spec = parse_external_spec(body)
    now = database_now(session)
    run = Run(
        id=new_run_id(),
        origin=EXTERNAL,
        created_at=now,
        created_by=principal.id,
        token_id=principal.credential.id if principal.credential.kind == "token" else None,
        **{
            name: spec[name]
            for name in ("name", "algorithm", "environment", "seed", "group", "tags", "notes")
        },
        spec=spec,
        queue="",
        memory_estimate_bytes=0,
        state=RunState.RUNNING,
        state_reason="trained elsewhere",
        started_at=now,
        lease_expires_at=now + timedelta(seconds=external.HEARTBEAT_S),
        attempt=0,
        revision=0,
    )
    service.add(session, run)
    return run
