"""Requests that create runs: one per seed and combination of the grid's values; what these would need."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.base import new_run_id
from backend.db.clock import database_now
from backend.db.engine import UnitOfWork
from backend.fleet.hosts import repository as hosts
from backend.fleet.hosts.service import warnings as host_warnings
from backend.platform.errors import Forbidden
from backend.platform.principals import Principal
from backend.runs.runs import external, service
from backend.runs.runs.external import require_storable
from backend.runs.runs.external_spec import ExternalFields, external_spec
from backend.runs.runs.grid import AnySpec, requested_specs
from backend.runs.runs.schemas import RunEstimate
from backend.specs.algorithms import ALGORITHMS
from backend.specs.annealing import annealing_warning
from backend.specs.extras import PACKAGES, install_command, missing_everywhere
from backend.specs.host_commands import missing
from backend.specs.problems import NO_FIELD, FieldProblem, InvalidSpec
from backend.specs.run import FILLED_IN, RunSpec, is_custom
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import RunState


def create(work: UnitOfWork, request: dict[str, Any] | ExternalFields, principal: Principal) -> list[Run]:
    """Create the runs of a request, one per combination of its grid's values and seed.

    Args:
        work: written only after the validation, which may take a while.
        request: what to create.
        principal: who sends it.

    Raises:
        InvalidSpec: with one problem per invalid field; nothing is stored.
        Forbidden: the token may only create external runs.
    """
    if isinstance(request, ExternalFields):
        if principal.only_own_run:
            raise Forbidden("this token may only write the run of its command")
        return [create_external(work.write, request, principal)]
    planned = specs(work.read, request)
    if principal.only_external_runs:  # a request that cannot be read is not one for a run of ours
        raise Forbidden(f"this token may only create external runs: set origin to {EXTERNAL}")
    return [service.create(work.write, spec, created_by=principal.id) for spec in planned]


def specs(session: Session, request: dict[str, Any]) -> list[AnySpec]:
    """One specification per combination of the grid's values and seed.

    Args:
        session: a session to read with.
        request: JSON values, with the fields of `RunFields`.

    Raises:
        InvalidSpec: with one problem per invalid field; or every host lacks an extra that they need.
    """
    if filled_in := sorted(FILLED_IN & request.keys()):
        raise InvalidSpec([FieldProblem(field=name, message=NO_FIELD) for name in filled_in])
    planned = requested_specs(describe(session, request))
    _require_extras(session, [spec for spec in planned if isinstance(spec, RunSpec)])
    return planned


def _require_extras(session: Session, planned: Sequence[RunSpec]) -> None:
    """Check that a host has the extras that the runs need, if there are hosts.

    Raises:
        InvalidSpec: every host lacks one.
    """
    needed: dict[str, str | None] = {}
    for spec in planned:
        needed |= {"algorithm": ALGORITHMS[spec.algorithm].extra or needed.get("algorithm")}
        needed |= {"environment": spec.catalogue_environment.extra or needed.get("environment")}
    if not any(needed.values()):
        return
    versions = [host.versions for host in hosts.all_hosts(session)]
    problems = [
        FieldProblem(
            field=field,
            message=f"needs {PACKAGES[extra]}, which every host lacks: on a host, {install_command(extra)}",
        )
        for field, extra in needed.items()
        if extra is not None and missing_everywhere(extra, versions)
    ]
    if problems:
        raise InvalidSpec(problems)


def describe(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """Return a request for runs, with its hosts' description of the environment if that is a custom one, or
    of the command.

    Raises:
        InvalidSpec: the hosts that list the environment cannot use it, or no host has the command.
    """
    if "command" in request:
        if "definition" in request:
            raise InvalidSpec([FieldProblem(field="definition", message=NO_FIELD)])
        commands = hosts.commands(session, request.get("host"))
        command = commands.get(str(request["command"]))
        if command is None:
            message = missing(request["command"], commands)
            raise InvalidSpec([FieldProblem(field="command", message=message)])
        return request | {"definition": command.command.model_dump(mode="json")}
    environment = request.get("environment")
    if not is_custom(environment):
        return request
    known = hosts.custom_environments(session)
    reason = hosts.refused_environments(session).get(str(environment))
    if reason is not None and environment not in known:
        raise InvalidSpec([FieldProblem(field="environment", message=reason)])
    description, _ = known.get(str(environment), (None, []))
    return request | {"custom": None if description is None else description.model_dump(mode="json")}


def estimate(session: Session, request: dict[str, Any]) -> RunEstimate:
    """The need of the runs of a request; nothing is stored.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    rows = [
        Run(
            environment=spec.environment,
            queue=spec.queue,
            wanted_host=spec.host,
            spec=spec.model_dump(mode="json"),
            memory_estimate_bytes=spec.memory_estimate_bytes,
        )
        for spec in specs(session, request)
        if isinstance(spec, RunSpec)
    ]
    if not rows:
        raise InvalidSpec([FieldProblem(field="command", message="only Callboard's own runs are estimated")])
    return RunEstimate(
        memory_bytes=max(row.memory_estimate_bytes for row in rows), warnings=warnings(session, rows)
    )


def warnings(session: Session, runs: Sequence[Run]) -> list[str]:
    """Why no host that may claim these runs, which are of one request, can run them well, and which of their
    settings have no effect."""
    if any(run.command for run in runs):
        return []
    without_effect = filter(None, (annealing_warning(run.spec) for run in runs))
    return [*host_warnings(session, runs), *dict.fromkeys(without_effect)]


def create_external(session: Session, fields: ExternalFields, principal: Principal) -> Run:
    """Store the run of a request, which is `running`.

    Raises:
        InvalidSpec: its settings have text that cannot be stored; nothing is stored.
    """
    require_storable(fields)
    spec = external_spec(fields)
    now = database_now(session)
    run = Run(
        id=new_run_id(),
        origin=EXTERNAL,
        created_at=now,
        created_by=principal.id,
        token_id=principal.credential.id if principal.credential.kind == "token" else None,
        **{
            name: spec[name]
            for name in ("name", "algorithm", "environment", "seed", "group", "project", "tags", "notes")
        },
        spec=spec,
        return_metric=spec["return_metric"],
        step_unit=spec["step_unit"] or "agent_steps",
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
