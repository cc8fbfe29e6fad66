"""The configurations that a request for a sweep has, and what is wrong with them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.experiments.sweeps import sampling
from backend.platform.errors import Invalid
from backend.platform.text import UNSTORABLE, unstorable_paths
from backend.runs.runs import grid, requests
from backend.runs.starts import service as starts
from backend.specs.problems import FieldProblem, InvalidSpec, quoted
from backend.specs.protocols import starts_protocol
from backend.specs.run import parse_run_spec
from backend.specs.sweep import SweepSpec

_SHOWN_PROBLEMS = 20


def check(spec: SweepSpec) -> None:
    """Refuse fields that do not fit each other.

    Raises:
        Invalid: with one problem per field.
    """
    problems = spec.field_problems()
    if problems:
        raise Invalid([FieldProblem(field=field, message=message) for field, message in problems.items()])


def request_of_runs(session: Session, spec: SweepSpec) -> dict[str, Any]:
    """The request that all runs of a sweep share, with the description of a custom environment.

    Raises:
        Invalid: it has a field that runs do not have, or names an environment that no host can use.
    """
    if "custom" in spec.run:
        raise Invalid.field("run.custom", "no such field")
    try:
        return requests.describe_environment(session, dict(spec.run))
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
            parse_run_spec(grid.merge_settings(spec.run, settings))
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
