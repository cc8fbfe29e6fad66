"""Sweeps: the configurations of a request, what is wrong with them, and their cells."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Experiment, ExperimentCell
from backend.experiments.cells import sampling, tpe
from backend.experiments.cells.planning import Limits
from backend.experiments.cells.rows import CellRow, NewCell
from backend.experiments.experiments import repository
from backend.experiments.experiments.kind import Kind, Planned, Stored
from backend.experiments.specs.sweep import SweepSpec
from backend.platform.errors import Invalid
from backend.platform.text import UNSTORABLE, unstorable_paths
from backend.runs.runs import grid, requests
from backend.runs.runs.external_spec import ExternalFields, external_spec
from backend.runs.starts import service as starts
from backend.specs.extras import install_command
from backend.specs.host_commands import NO_SEED, CommandSpec, script_arguments
from backend.specs.names import grid_name, script_name
from backend.specs.problems import NO_FIELD, FieldProblem, InvalidSpec, problems_of, quoted
from backend.specs.protocols import starts_protocol
from backend.specs.run import FILLED_IN, parse_run_spec
from backend.specs.states import ENDED
from backend.statistics.estimates import interquartile_mean

_SHOWN_PROBLEMS = 20


def check(spec: SweepSpec) -> None:
    """Refuse fields that do not fit each other.

    Raises:
        Invalid: with one problem per field.
    """
    problems = spec.field_problems()
    if spec.sampler == "tpe" and not tpe.is_installed():
        problems["sampler"] = f"needs Optuna, which the server lacks: {install_command('optuna')}"
    if problems:
        raise Invalid([FieldProblem(field=field, message=message) for field, message in problems.items()])


def wants_configuration(spec: SweepSpec, cells: Sequence[CellRow]) -> bool:
    """Whether scores choose another configuration now: nothing waits, and there is room for a run."""
    if spec.sampler != "tpe" or len({cell.arm for cell in cells}) >= (spec.n_configurations or 0):
        return False
    n_open = sum(cell.started and cell.state is not None and cell.state not in ENDED for cell in cells)
    return all(cell.started or cell.error for cell in cells) and n_open < spec.concurrency


def next_cells(
    spec: SweepSpec, known: Sequence[sampling.ConfigValues], cells: Sequence[CellRow]
) -> list[NewCell]:
    """The cells of the configuration that scores choose.

    Args:
        spec: a sweep that wants one.
        known: its configurations, by number.
        cells: all its cells, with their scores.
    """
    of_arm: dict[int, list[CellRow]] = defaultdict(list)
    for cell in cells:
        of_arm[cell.arm].append(cell)
    told = []
    for arm, settings in enumerate(known):
        scores = [cell.score for cell in of_arm[arm] if cell.counts and cell.score is not None]
        has_ended = all(cell.error or cell.state is None or cell.state in ENDED for cell in of_arm[arm])
        score = float(interquartile_mean(np.array(scores))) if scores else None
        told.append(tpe.Told(settings, score, has_ended))
    asked = tpe.ask(spec.space, told, spec.sampler_seed)
    return _cells(spec, [*known, asked], dict.fromkeys(range(len(known)), spec.max_seeds))


def request_of_runs(session: Session, spec: SweepSpec) -> dict[str, Any]:
    """The request that all runs of a sweep share, with the description of a custom environment or a command.

    Raises:
        Invalid: it has a field that runs do not have, or names an environment that no host can use.
    """
    if filled_in := sorted(FILLED_IN & spec.run.keys()):
        raise Invalid([FieldProblem(field=f"run.{name}", message=NO_FIELD) for name in filled_in])
    if spec.is_of_scripts:
        return dict(spec.run)
    try:
        return requests.describe(session, dict(spec.run))
    except InvalidSpec as error:
        raise Invalid(_locate(spec, error.problems)) from None


def of(spec: SweepSpec) -> list[sampling.ConfigValues]:
    """The configurations of a sweep whose runs are all valid.

    Raises:
        Invalid: with the problems of the configurations' runs.
    """
    paths = unstorable_paths(spec.model_dump(mode="json"))
    if paths:
        raise Invalid([FieldProblem(field=path, message=UNSTORABLE) for path in paths])
    configurations = sampling.configurations(spec)
    problems: dict[tuple[str, str], FieldProblem] = {}
    for settings in configurations:
        try:
            if spec.is_of_scripts:
                script_run(spec, settings, 0)
                continue
            run_spec = grid.parse_spec(grid.merge_settings(spec.run, settings))
            if isinstance(run_spec, CommandSpec):
                _check_command(spec, run_spec)
        except InvalidSpec as error:
            located = _locate(spec, error.problems)
            problems |= {(problem.field, problem.message): problem for problem in located}
            if len(problems) >= _SHOWN_PROBLEMS:
                break
    if problems:
        raise Invalid([*problems.values()][:_SHOWN_PROBLEMS])
    if spec.objective == "evaluation":
        _check_evaluations(spec, configurations)
    return configurations


def script_run(
    spec: SweepSpec, settings: sampling.ConfigValues, seed: int
) -> tuple[ExternalFields, dict[str, Any], int | None]:
    """A run of a script that somebody starts, and what is handed to that: settings, and the seed unless there
    is only one.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    given_seed = seed if spec.max_seeds > 1 else None
    request = grid.merge_settings(spec.run, settings) | {"seed": given_seed}
    fields = ExternalFields.model_validate(request)
    external_spec(fields)
    script_arguments(fields.config, given_seed)
    name = script_name(fields.name or f"{fields.algorithm} {fields.environment}", settings, given_seed)
    return fields.model_copy(update={"name": name}), fields.config, given_seed


def _check_command(spec: SweepSpec, run_spec: CommandSpec) -> None:
    """Refuse what runs of a command do not have.

    Raises:
        Invalid: with the field that is wrong.
    """
    if spec.objective == "evaluation":
        raise Invalid.field("objective", "runs of a command are not evaluated: use training")
    if spec.max_seeds > 1 and not run_spec.command.seed:
        raise Invalid.field("max_seeds", f"must be 1, with racing null: {NO_SEED}")


def pinned(session: Session, spec: SweepSpec, settings: sampling.ConfigValues) -> SweepSpec:
    """The sweep with the version of the start set of its runs' evaluations.

    Args:
        session: any session.
        spec: a sweep whose runs are valid.
        settings: the sweep's first configuration.

    Raises:
        Invalid: a set does not exist, or the runs cannot start from it; or one that varies has no version.
    """
    name = starts.EVALUATION_PROTOCOL
    place = f"space.{name}" if name in spec.space else f"run.{name}"
    config = spec.run.get("config")
    own = config.get("evaluation_protocol") if isinstance(config, dict) else None
    chosen = (spec.space[name].values or ()) if name in spec.space else (own,)
    named = [
        protocol for protocol in chosen if isinstance(protocol, str) and starts_protocol(protocol) is not None
    ]
    if not named:
        return spec
    run_spec = parse_run_spec(grid.merge_settings(spec.run, settings))
    versions = {
        protocol: starts.resolved(
            session, protocol, run_spec.environment, run_spec.environment_config, place
        )[0]
        for protocol in named
    }
    if name in spec.space:
        for protocol, version in versions.items():
            if protocol != version:
                raise Invalid.field(place, f"name the version of each start set, as in {version}")
    elif isinstance(config, dict):
        versioned = config | {"evaluation_protocol": versions[named[0]]}
        spec = spec.model_copy(update={"run": spec.run | {"config": versioned}})
    return spec.model_copy(update={"protocol": versions.get(spec.protocol or "", spec.protocol)})


def _check_evaluations(spec: SweepSpec, configurations: Sequence[sampling.ConfigValues]) -> None:
    """Refuse evaluations that runs do not make, or that cannot be compared."""
    run_specs = [parse_run_spec(grid.merge_settings(spec.run, settings)) for settings in configurations]
    if any(run_spec.config.evaluation_episodes == 0 for run_spec in run_specs):
        raise Invalid.field("objective", "runs are not evaluated where config.evaluation_episodes is 0")
    used, *others = dict.fromkeys(run_spec.evaluation_protocol for run_spec in run_specs)
    if others:
        message = f"the configurations are evaluated under different protocols: {', '.join((used, *others))}"
        raise Invalid.field("objective", f"{message}; set run.config.evaluation_protocol")
    if spec.protocol not in (None, used):
        message = f"the runs are evaluated under {used}, got {quoted(spec.protocol)}"
        raise Invalid.field("protocol", f"{message}: set run.config.evaluation_protocol")


def _locate(spec: SweepSpec, problems: Sequence[FieldProblem]) -> list[FieldProblem]:
    """Problems of a run's request, with their paths in the sweep's."""
    return [
        FieldProblem(
            field=f"space.{problem.field}" if problem.field in spec.space else f"run.{problem.field}",
            message=problem.message,
        )
        for problem in problems
    ]


def _cells(
    spec: SweepSpec, configurations: Sequence[sampling.ConfigValues], first_draws: Mapping[int, int]
) -> list[NewCell]:
    """The cells of configurations in the order in which they are started: by draw and configuration.

    Args:
        spec: the sweep.
        configurations: all of them, by number.
        first_draws: of those that have cells already, the number of their first new draw.
    """
    environment = str(spec.runs_have("environment"))
    return [
        NewCell(arm, environment, draw, spec.seed_of(arm, draw), settings)
        for draw in range(spec.max_seeds)
        for arm, settings in enumerate(configurations)
        if draw >= first_draws.get(arm, 0)
    ]


def _prepare(session: Session, spec: SweepSpec) -> Planned:
    check(spec)
    request = request_of_runs(session, spec)
    # In the runs' request, so that all runs stay in one group if the sweep is renamed.
    spec = spec.model_copy(update={"run": request | {"group": request.get("group") or spec.name}})
    configurations = of(spec)
    if not spec.is_of_scripts:
        spec = pinned(session, spec, configurations[0])
    return spec.model_dump(mode="json"), _cells(spec, configurations, {})


def _extend(
    session: Session, sweep: Experiment, cells: Sequence[CellRow], extension: Mapping[str, Any]
) -> Planned:
    """Add seeds, configurations or values, or replace the budget. Under `values`, there are further ones by
    field, of settings that vary over a list of values."""
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
    check(spec)
    wanted = of(spec)
    if not spec.is_of_scripts:
        spec = pinned(session, spec, wanted[0])
    known = [row.settings for row in repository.configurations(session, sweep.id)]
    new = [settings for settings in wanted if settings not in known]
    if spec.n_configurations is not None:
        new = new[: max(0, spec.n_configurations - len(known))]
    if values and not new:
        raise Invalid.field("values", "would add no configuration: raise n_configurations too")
    first_draws = Counter(cell.arm for cell in cells)
    return spec.model_dump(mode="json"), _cells(spec, [*known, *new], first_draws)


def _limits(spec: SweepSpec) -> Limits:
    return Limits(spec.max_seeds, spec.racing, spec.budget, spec.concurrency)


def _run_spec(spec: SweepSpec, stored: Stored, cell: ExperimentCell) -> grid.AnySpec:
    run_spec = grid.parse_spec(grid.merge_settings(spec.run, cell.settings))
    if not isinstance(run_spec, CommandSpec) or run_spec.command.seed:
        run_spec = run_spec.model_copy(update={"seed": cell.seed})
    return run_spec.model_copy(update={"name": grid_name(run_spec, [*cell.settings], spec.max_seeds)})


SWEEP = Kind(
    extensible=("max_seeds", "n_configurations", "values", "budget"),
    reuses_runs=False,
    eliminates=True,
    parse=SweepSpec.model_validate,
    limits=_limits,
    run_spec=_run_spec,
    prepare=_prepare,
    extend=_extend,
)
