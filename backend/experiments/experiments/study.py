"""Studies: arms × environments × draws, each cell validated before anything is stored."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Experiment, ExperimentCell
from backend.experiments.cells.equal_runs import key_of
from backend.experiments.cells.planning import Limits
from backend.experiments.cells.protocols import protocols_of
from backend.experiments.cells.rows import CellRow, PlannedCell
from backend.experiments.cells.sampling import ConfigValues, random_settings
from backend.experiments.experiments.kind import Kind, Planned, Stored
from backend.experiments.experiments.stored import study_spec
from backend.experiments.figures.problems import figure_problems
from backend.experiments.figures.unfit import differing_protocols, unfit_figures
from backend.experiments.specs.study import Arm, StudySpec
from backend.fleet.hosts import repository as hosts
from backend.platform.errors import Invalid
from backend.platform.text import UNSTORABLE, unstorable_paths
from backend.runs.runs import requests
from backend.runs.runs.grid import merge_settings
from backend.runs.starts import service as starts
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.names import default_name
from backend.specs.problems import MAX_PROBLEMS, FieldProblem, InvalidSpec, problems_of, quoted
from backend.specs.protocols import starts_protocol
from backend.specs.run import RunSpec, is_custom, parse_run_spec


def resolve_presets(spec: StudySpec) -> StudySpec:
    """The study with the settings of its arms' presets in place of their names, so that a copy of it does not
    change with the presets. Settings that its draws choose are left out.

    Raises:
        Invalid: an algorithm does not have the preset, or the preset is not meant for an environment.
    """
    problems: list[FieldProblem] = []
    arms = [_resolve(arm, at, spec, problems) for at, arm in enumerate(spec.arms)]
    if problems:
        raise Invalid(problems)
    return spec.model_copy(update={"arms": tuple(arms)})


def _resolve(arm: Arm, at: int, spec: StudySpec, problems: list[FieldProblem]) -> Arm:
    algorithm = ALGORITHMS.get(arm.algorithm)
    if arm.preset is None or algorithm is None:  # an unknown algorithm is reported with its runs
        return arm
    preset = next((preset for preset in algorithm.presets if preset.id == arm.preset), None)
    field = f"arms.{at}.preset"
    if preset is None:
        known = ", ".join(preset.id for preset in algorithm.presets)
        message = f"{algorithm.title} has no preset {quoted(arm.preset)}; use one of {known}"
        problems.append(FieldProblem(field=field, message=message))
        return arm
    for environment in spec.environments:
        if environment in ENVIRONMENTS and not preset.suits(ENVIRONMENTS[environment]):
            message = f"{preset.title} is not meant for {environment}"
            problems.append(FieldProblem(field=field, message=message))
    changes: dict[str, Any] = {"preset": None}
    for section in ("config", "environment_config"):
        of_preset: dict[str, Any] = getattr(preset, section)
        fixed = {name: of_preset[name] for name in of_preset if f"{section}.{name}" not in spec.draws.space}
        changes[section] = fixed | getattr(arm, section)
    return arm.model_copy(update=changes)


def descriptions(session: Session, spec: StudySpec) -> dict[str, Any]:
    """The descriptions that hosts report of the custom environments of a study, by environment id.

    Raises:
        Invalid: no host of this installation can run one of its environments.
    """
    known: dict[str, Any] = {}
    rows = hosts.all_hosts(session)
    wanted = spec.run.get("host")
    problems = []
    if rows and isinstance(wanted, str):
        rows = [host for host in rows if host.id == wanted]
        if not rows:
            message = f"this installation has no host {quoted(wanted)}"
            problems.append(FieldProblem(field="run.host", message=message))
    for at, environment in enumerate(spec.environments):
        field = f"environments.{at}"
        try:
            described = requests.describe(session, {"environment": environment})
        except InvalidSpec as error:
            problems += [FieldProblem(field=field, message=problem.message) for problem in error.problems]
            continue
        if is_custom(environment):
            known[environment] = described.get("custom")
        elif (
            environment in ENVIRONMENTS
            and rows
            and not any(environment in host.environments for host in rows)
        ):
            message = f"no host of this installation can run {environment}"
            if isinstance(wanted, str):
                message = f"the host {wanted} cannot run {environment}"
            problems.append(FieldProblem(field=field, message=message))
    if problems:
        raise Invalid(problems)
    return known


def field_problems(spec: StudySpec) -> dict[str, str]:
    """Errors of fields that do not fit each other, by path: of the study, then of its figures."""
    return spec.field_problems() | figure_problems(spec)


def check(spec: StudySpec, known: Collection[str] = ()) -> None:
    """Refuse fields that do not fit each other, except those in `known`.

    Raises:
        Invalid: with one problem per field.
    """
    problems = {field: text for field, text in field_problems(spec).items() if field not in known}
    if not problems:
        problems = dict.fromkeys(unstorable_paths(spec.model_dump(mode="json")), UNSTORABLE)
    refuse(problems)


def refuse(problems: Mapping[str, str]) -> None:
    """Raise the errors of fields, if there are any.

    Raises:
        Invalid: with one problem per field.
    """
    if problems:
        raise Invalid([FieldProblem(field=field, message=text) for field, text in problems.items()])


def pin_start_sets(session: Session, spec: StudySpec, custom: Mapping[str, Any]) -> StudySpec:
    """The study with the version of each start set, so that all its runs start from the same states.

    Raises:
        Invalid: a set does not exist, or the arms cannot start from it; or one that is drawn has no version.
    """
    problems: dict[str, str] = {}
    drawn = spec.draws.space.get(starts.EVALUATION_PROTOCOL)
    for protocol in map(str, (drawn and drawn.values) or ()):
        chosen_set = starts_protocol(protocol)
        if chosen_set is not None and chosen_set.version is None:
            message = f"name the version of each start set, as in {protocol}@1"
            problems[f"draws.space.{starts.EVALUATION_PROTOCOL}"] = message
    chosen = dict(spec.starts)
    arms = list(spec.arms)
    for at, arm in enumerate(spec.arms):
        own = str(arm.config.get("evaluation_protocol"))
        for environment in spec.environments:
            of_environment = environment in spec.starts
            protocol = spec.starts.get(environment, own)
            if starts_protocol(protocol) is None:
                continue
            field = f"starts.{environment}" if of_environment else f"arms.{at}.{starts.EVALUATION_PROTOCOL}"
            try:
                config = run_spec_of(spec, at, environment, 0, {}, custom).environment_config
                version, _ = starts.resolved(session, protocol, environment, config, field)
            except InvalidSpec:  # reported with its runs
                continue
            except Invalid as error:
                problems |= {problem.field: problem.message for problem in error.errors}
                continue
            if of_environment:
                chosen[environment] = version
            else:
                config_values = arm.config | {"evaluation_protocol": version}
                arms[at] = arm.model_copy(update={"config": config_values})
    refuse(problems)
    return spec.model_copy(update={"starts": chosen, "arms": tuple(arms)})


def cells(
    spec: StudySpec,
    custom: Mapping[str, Any],
    first_draw: int = 0,
    *,
    before_each: Callable[[], None] = lambda: None,
) -> list[PlannedCell]:
    """Every cell from a draw on, in the order in which they are started: by draw, environment and arm.
    `before_each` is called before each of them.

    Raises:
        Invalid: with the problems of the cells' runs.
    """
    drawn = random_settings(spec.draws.space, spec.draws.n, spec.draws.sampler_seed)
    if spec.draws.space and len(drawn) < spec.draws.n:
        message = f"only {len(drawn):,} different settings could be drawn from the space of draws"
        raise Invalid.field("draws.n", message)
    planned: list[PlannedCell] = []
    problems: dict[tuple[str, str], FieldProblem] = {}
    for draw in range(first_draw, spec.draws.n):
        settings = drawn[draw] if spec.draws.space else {}
        for place, environment in enumerate(spec.environments):
            for at in range(len(spec.arms)):
                before_each()
                try:
                    run_spec = run_spec_of(spec, at, environment, draw, settings, custom)
                except InvalidSpec as error:
                    located = _locate(spec, at, place, error.problems)
                    problems |= {(problem.field, problem.message): problem for problem in located}
                    continue
                cell = PlannedCell(
                    at, environment, draw, run_spec.seed, settings, run_spec, key=key_of(run_spec)
                )
                planned.append(cell)
        if len(problems) >= MAX_PROBLEMS or (problems and not spec.draws.space):
            break
    if problems:
        raise Invalid([*problems.values()])
    return planned


def run_spec_of(
    spec: StudySpec,
    arm_number: int,
    environment: str,
    draw: int,
    settings: ConfigValues,
    custom: Mapping[str, Any],
) -> RunSpec:
    """The specification of a cell's run.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    arm = spec.arms[arm_number]
    starts_from = spec.starts.get(environment)
    of_starts = {} if starts_from is None else {"evaluation_protocol": starts_from}
    request: dict[str, Any] = {
        **spec.run,
        "algorithm": arm.algorithm,
        "environment": environment,
        "config": arm.config | of_starts,
        "environment_config": arm.environment_config,
        "stop": arm.stop or spec.run.get("stop", {}),
        "seed": spec.draws.seed_of(draw),
    }
    if environment in custom:
        request["custom"] = custom[environment]
    run_spec = parse_run_spec(merge_settings(request, settings))
    varied = [path.partition(".")[2] for path in settings]
    return run_spec.model_copy(update={"name": default_name(run_spec, varied)})


def _locate(
    spec: StudySpec, arm: int, place: int, problems: Sequence[FieldProblem]
) -> Iterator[FieldProblem]:
    """Problems of a run's request, with their paths in the study's."""
    of_arm = ["algorithm", "config", "environment_config", *(["stop"] if spec.arms[arm].stop else [])]
    for problem in problems:
        section, _, rest = problem.field.partition(".")
        if problem.field == starts.EVALUATION_PROTOCOL and spec.environments[place] in spec.starts:
            field = f"starts.{spec.environments[place]}"
        elif problem.field in spec.draws.space:
            field = f"draws.space.{problem.field}"
        elif section == "environment":
            field = f"environments.{place}"
        elif section in of_arm:
            field = f"arms.{arm}.{problem.field}"
        else:
            field = f"run.{section}" + (f".{rest}" if rest else "")
        yield problem.model_copy(update={"field": field})


def prepare(
    session: Session, spec: StudySpec, before_each: Callable[[], None] = lambda: None
) -> tuple[StudySpec, list[PlannedCell], dict[str, Any]]:
    """A study with its presets resolved, its cells, and the descriptions of its custom environments.
    `before_each` is called before each cell.

    Raises:
        Invalid: with one problem per invalid field.
    """
    check(spec)
    spec = resolve_presets(spec)
    custom = descriptions(session, spec)
    spec = pin_start_sets(session, spec, custom)
    planned = cells(spec, custom, before_each=before_each)
    refuse(unfit_figures(spec, planned))
    return spec, planned, custom


def _prepare(session: Session, spec: StudySpec) -> Planned:
    spec, planned, custom = prepare(session, spec)
    # In the runs' request, so that all runs stay in one group if the study is renamed.
    spec = spec.model_copy(update={"run": spec.run | {"group": spec.run.get("group") or spec.name}})
    return spec.model_dump(mode="json") | {"custom": custom}, planned


def _extend(
    session: Session, study: Experiment, rows: Sequence[CellRow], extension: Mapping[str, Any]
) -> Planned:
    """Add draws or environments, or replace the budget: `draws` is the number of draws, with those so far;
    `environments` are further ones."""
    before = study_spec(study.spec)
    draws = extension.get("draws") or before.draws.n
    if draws < before.draws.n:
        raise Invalid.field("draws", f"must be at least {before.draws.n}, as now")
    added = list(extension.get("environments") or [])
    changes: dict[str, Any] = {
        "draws": before.draws.model_dump(mode="json") | {"n": draws},
        "environments": [*before.environments, *added],
    }
    if extension.get("budget") is not None:
        changes["budget"] = extension["budget"]
    for at, environment in enumerate(added):
        if before.starts and environment not in before.starts:
            message = "the evaluations start from sets, and this environment has none: start another study"
            raise Invalid.field(f"environments.{at}", message)
    with _naming_fields_of_extension(len(before.environments)):
        try:
            spec = StudySpec.model_validate(before.model_dump(mode="json") | changes)
        except ValidationError as error:
            raise Invalid(problems_of(error)) from None
        # A study of an earlier version may break rules of this one, and its figures cannot be changed.
        check(spec, field_problems(before))
        custom = descriptions(session, spec)
        pin_start_sets(session, spec, custom)
        planned = cells(spec, custom, 0 if added else before.draws.n)
    known = {(row.arm, row.environment, row.draw) for row in rows}
    if added:
        unfit, extended = unfit_figures(spec, planned), "environments"
    else:  # the new draws may choose another protocol
        protocols = [protocols_of(spec, number) for number in range(len(spec.arms))]
        unfit, extended = differing_protocols(spec, planned, protocols), "draws"
    if unfit:
        raise Invalid.field(extended, "; ".join(f"{field} {text}" for field, text in unfit.items()))
    new = [cell for cell in planned if (cell.arm, cell.environment, cell.draw) not in known]
    return spec.model_dump(mode="json") | {"custom": custom}, new


@contextmanager
def _naming_fields_of_extension(n_environments: int) -> Iterator[None]:
    """Errors in fields of the extended study are in those of the extension: its environments begin after the
    study's own `n_environments`."""

    def name(field: str) -> str:
        section, _, rest = field.partition(".")
        at, _, below = rest.partition(".")
        if section == "environments" and at.isdigit() and int(at) >= n_environments:
            return ".".join(filter(None, [section, str(int(at) - n_environments), below]))
        return "draws" if field == "draws.n" else field

    try:
        yield
    except Invalid as error:
        problems = [problem.model_copy(update={"field": name(problem.field)}) for problem in error.errors]
        raise Invalid(problems) from None


def _limits(spec: StudySpec) -> Limits:
    return Limits(spec.draws.n, None, spec.budget, spec.concurrency)


def _run_spec(spec: StudySpec, stored: Stored, cell: ExperimentCell) -> RunSpec:
    custom = stored.get("custom") or {}
    return run_spec_of(spec, cell.arm, cell.environment, cell.draw, cell.settings, custom)


STUDY = Kind(
    extensible=("draws", "environments", "budget"),
    reuses_runs=True,
    eliminates=False,
    parse=study_spec,
    limits=_limits,
    run_spec=_run_spec,
    prepare=_prepare,
    extend=_extend,
)
