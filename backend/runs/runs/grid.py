"""Grids and seeds: one request for the runs of every combination of some values, each with every seed."""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from backend.platform.text import UNSTORABLE, unstorable_paths
from backend.specs.host_commands import NO_SEED, CommandSpec, parse_command_spec
from backend.specs.names import ending_in, grid_name
from backend.specs.problems import MAX_PROBLEMS, FieldProblem, InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.run_fields import MAX_SEED, MAX_SEEDS, SECTIONS

MAX_RUNS = MAX_SEEDS
"""Maximum number of runs that one request may create."""
_MAX_FIELDS = 20

Grid = dict[str, list[Any]]
"""Values by field path, such as `config.learning_rate`."""


AnySpec = RunSpec | CommandSpec
"""The specification of a run that workers run."""


def parse_spec(request: Mapping[str, Any]) -> AnySpec:
    """The specification of a run of Callboard's own, or of a host's command.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    return parse_command_spec(request) if "command" in request else parse_run_spec(dict(request))


def requested_specs(request: Mapping[str, Any]) -> list[AnySpec]:
    """One specification per combination of the grid's values and seed.

    Args:
        request: JSON values, with the fields of `RunFields`. For a custom environment, `custom` is its host's
            description of it; for a command, `definition`.

    Raises:
        InvalidSpec: with one problem per invalid value.
    """
    body = {
        name: value
        for name, value in request.items()
        if name != "origin" and (name != "seed" or value is not None)  # generated clients send nulls
    }
    rest = {name: value for name, value in body.items() if name not in ("seeds", "grid")}
    problems = {
        FieldProblem(field=path or "body", message=UNSTORABLE): None for path in unstorable_paths(body)
    }
    seeds = read_seeds(body)
    if seeds is not None:
        problems |= dict.fromkeys(seed_problems(seeds, "seed" in body))
    grid_errors = grid_problems(body)
    grid = {} if grid_errors else (body.get("grid") or {})
    known = {problem.field for problem in problems}
    specs = []
    for combined, combination in combinations(rest, grid):
        if len(problems) >= MAX_PROBLEMS:  # the others would repeat most of them
            break
        try:
            spec = parse_spec(combined)
        except InvalidSpec as error:
            problems |= dict.fromkeys(p for p in error.problems if p.field not in known)
            continue
        if seeds is not None and isinstance(spec, CommandSpec) and not spec.command.seed:
            problems[FieldProblem(field="seeds", message=NO_SEED)] = None
        if not problems:
            specs += [with_seed(spec, seed, seeds, combination) for seed in seeds_of(seeds, spec)]
    problems |= dict.fromkeys(grid_errors)
    if problems:
        raise InvalidSpec([*problems])
    return specs


def grid_problems(body: dict[str, Any]) -> list[FieldProblem]:
    """Errors of a request's `grid`; none without one."""
    grid = body.get("grid")
    if grid is None:
        return []
    if not isinstance(grid, dict) or not 1 <= len(grid) <= _MAX_FIELDS:
        return [_problem("grid", f"must be an object of 1 to {_MAX_FIELDS} fields, each with its values")]
    problems = [problem for path, values in grid.items() for problem in _field_problems(body, path, values)]
    if not problems and (n_runs := _n_runs(body, grid)) > MAX_RUNS:
        message = f"would create {n_runs:,} runs; at most {MAX_RUNS} are allowed: give fewer values or seeds"
        problems.append(_problem("grid", message))
    return problems


def combinations(body: dict[str, Any], grid: Grid) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The request with each combination of the grid's values, and that combination by field path.

    Args:
        body: a request without `grid`.
        grid: a grid without problems.
    """
    for values in product(*grid.values()):
        combination = dict(zip(grid, values, strict=True))
        yield merge_settings(body, combination), combination


def merge_settings(body: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A request with these settings, by field path."""
    request = dict(body)
    for path, value in settings.items():
        section, _, name = path.partition(".")
        given = request.get(section, {})
        # An invalid section is reported by the validation of the whole request.
        if isinstance(given, dict):
            request[section] = given | {name: value}
    return request


def _problem(field: str, message: str) -> FieldProblem:
    return FieldProblem(field=field, message=message)


def _field_problems(body: dict[str, Any], path: Any, values: Any) -> Iterator[FieldProblem]:
    field = f"grid.{path}"
    section, _, name = str(path).partition(".")
    if section not in SECTIONS or not name:
        message = "use a field of config, environment_config or stop, such as config.learning_rate"
        yield _problem(field, f"is not a setting: {message}")
        return
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_RUNS:
        yield _problem(field, f"must be a list of 1 to {MAX_RUNS} values")
        return
    if any(isinstance(value, dict | list) for value in values):
        yield _problem(field, "must be a list of numbers, strings or booleans")
    elif len({(isinstance(value, bool), value) for value in values}) < len(values):
        yield _problem(field, "contains a value twice")
    given = body.get(section)
    if isinstance(given, dict) and name in given:
        yield _problem(field, f"is also in {section}: give it once")


def _n_runs(body: dict[str, Any], grid: Grid) -> int:
    seeds = body.get("seeds")
    return prod(len(values) for values in grid.values()) * (len(seeds) if isinstance(seeds, list) else 1)


def read_seeds(body: dict[str, Any]) -> Any:
    """A request's `seeds`. JSON has one number type: 1.0 and 1 are the same."""
    seeds = body.get("seeds")
    if not isinstance(seeds, list):
        return seeds
    return [int(seed) if isinstance(seed, float) and seed.is_integer() else seed for seed in seeds]


def seeds_of(seeds: Any, spec: AnySpec) -> list[int]:
    """The seeds of a request with these `seeds`, or that of its spec."""
    return seeds if isinstance(seeds, list) else [spec.seed]


def with_seed(spec: AnySpec, seed: Any, seeds: Any, combination: dict[str, Any]) -> AnySpec:
    """The spec with this seed, and with a name that distinguishes it from the others of the request."""
    spec = spec.model_copy(update={"seed": seed})
    if combination:
        return spec.model_copy(update={"name": grid_name(spec, [*combination], len(seeds_of(seeds, spec)))})
    return spec.model_copy(update={"name": _name(spec, seed, len(seeds_of(seeds, spec)))})


def _name(spec: AnySpec, seed: int, n_seeds: int) -> str | None:
    """The given name; with several seeds, each with its seed, to distinguish the runs."""
    if spec.name is None or n_seeds == 1:
        return spec.name
    return ending_in(f" seed {seed}", spec.name)


def seed_problems(seeds: Any, also_seed: bool) -> list[FieldProblem]:
    """Errors of a request's `seeds`."""
    problems = []
    if not isinstance(seeds, list) or not 1 <= len(seeds) <= MAX_SEEDS:
        problems.append(FieldProblem(field="seeds", message=f"must be a list of 1 to {MAX_SEEDS} seeds"))
    else:
        problems += [
            FieldProblem(field=f"seeds.{i}", message=f"must be an integer from 0 to {MAX_SEED:,}")
            for i, seed in enumerate(seeds)
            if type(seed) is not int or not 0 <= seed <= MAX_SEED
        ]
        if not problems and len(set(seeds)) < len(seeds):
            problems.append(FieldProblem(field="seeds", message="contains a seed twice"))
    if also_seed:
        problems.append(FieldProblem(field="seed", message="give either seed or seeds, not both"))
    return problems
