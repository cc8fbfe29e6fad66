"""A run's specification, validated as a whole before anything is stored or started."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, SerializeAsAny, ValidationError

from backend.specs.algorithms import ALGORITHMS, Algorithm, AlgorithmConfig
from backend.specs.algorithms.memory import RunFacts
from backend.specs.environments import ENVIRONMENTS, Environment, EnvironmentConfig
from backend.specs.environments.custom import CustomConfig, CustomEnvironment
from backend.specs.fields import ENVIRONMENT_PREFIX, Frozen, Strict, marked_fields, setting
from backend.specs.problems import (
    MAX_PROBLEMS,
    FieldProblem,
    InvalidSpec,
    explain,
    paths_by_name,
    point_elsewhere,
    point_into_sections,
    problems_of,
    quoted,
    similar_ids,
    unknown_fields,
)
from backend.specs.run_fields import SECTIONS, RunOptions, Seed

M = TypeVar("M", bound=Frozen)


class StopSpec(Strict):
    """Limits of a run. It finishes when it reaches the first of them; at least one is required."""

    agent_steps: int | None = setting(
        None,
        ge=1,
        le=10**12,
        title="Agent steps",
        group="stopping",
        unit="agent steps",
        description="Total agent steps (decisions) over all environments.",
    )
    wall_time_s: float | None = setting(
        None,
        gt=0,
        le=10**8,
        title="Training time",
        group="stopping",
        unit="s",
        description="Training time of all attempts, without evaluation.",
    )
    score: float | None = setting(
        None,
        title="Score",
        group="stopping",
        description="Mean true return of the last 100 training episodes.",
    )


_NOT_AN_OBJECT = {
    "config": 'must be an object of settings, such as {"gamma": 0.9}',
    "environment_config": "must be an object of settings",
    "stop": 'must be an object of limits, such as {"agent_steps": 1000000}',
    "custom": "must be an object of settings",
}
_MAX_LISTED = 40
"""Maximum number of known ids that a message about an unknown one lists."""


class RunSpec(RunOptions):
    """Everything an engine needs to train. Create it with `parse_run_spec`."""

    algorithm: str
    """Id of the algorithm, from `GET /algorithms`."""
    package: str | None = None
    """The distribution that the algorithm is of with its version, such as `callboard-a2c-gae==1.0`; null for
    Callboard's own. Only hosts with this version claim the run."""
    environment: str
    """Id of the environment, from `GET /environments`."""
    config: SerializeAsAny[AlgorithmConfig]
    """Settings of the algorithm, defaults included."""
    environment_config: SerializeAsAny[EnvironmentConfig]
    """Settings of the environment, defaults included."""
    custom: CustomEnvironment | None = None
    """The host's description of a custom environment; None for an environment of the catalogue."""
    seed: Seed = 0
    """Seed of all random numbers."""
    stop: StopSpec
    """Limits of the run: it ends when it reaches the first of them."""

    @property
    def catalogue_environment(self) -> Environment:
        """The environment as described in the catalogue."""
        return self.custom.environment() if self.custom is not None else ENVIRONMENTS[self.environment]

    @property
    def annealed_over_agent_steps(self) -> int | None:
        """Agent steps over which a linear learning rate falls to 0."""
        return self.annealing_agent_steps or self.stop.agent_steps

    @property
    def evaluation_protocol(self) -> str:
        """The protocol of its evaluations, unless a request names another."""
        chosen = self.config.evaluation_protocol
        if chosen != "auto":
            return chosen
        of_paper = ALGORITHMS[self.algorithm].evaluation_protocol
        return self.catalogue_environment.default_protocol(of_paper, self.environment_config)

    def evaluation_config(self, protocol: str) -> EnvironmentConfig:
        """The environment config of an evaluation under this protocol.

        Raises:
            UnsupportedProtocolError: the environment does not have it.
        """
        return self.catalogue_environment.protocol(protocol).evaluation_config(self.environment_config)

    @property
    def config_values(self) -> dict[str, Any]:
        """Settings of the environment and of the algorithm, as JSON values."""
        return self.environment_config.model_dump(mode="json") | self.config.model_dump(mode="json")

    @property
    def memory_estimate_bytes(self) -> int:
        """Upper estimate of the memory of the engine and its processes, as the algorithm's config has it."""
        return self.config.memory_bytes(
            _facts(
                self.catalogue_environment,
                self.environment_config,
                self.stop.agent_steps,
                self.annealed_over_agent_steps,
                # On a host with GPUs one with the device `auto` may be none either.
                is_forked=self.device != "cuda" and not is_custom(self.environment),
            )
        )


FILLED_IN = frozenset({"custom", "package"})
"""Fields of a spec that no request has: hosts describe environments, installed distributions algorithms."""
REQUEST_FIELDS = (
    *(name for name in RunSpec.model_fields if name not in FILLED_IN),
    *("seeds", "grid", "origin"),
)
"""The fields of a request, which may create several runs."""


def _facts(
    environment: Environment,
    config: EnvironmentConfig,
    agent_steps: int | None,
    annealing: int | None,
    *,
    is_forked: bool = True,
) -> RunFacts:
    """What an algorithm's config needs to know of the rest of a run."""
    return RunFacts(
        environment=environment.id,
        observation=environment.observation,
        observation_shape=environment.observed_shape(config),
        stacks_frames=config.stacks_frames,
        emulator_bytes=environment.memory_bytes,
        longest_episode_agent_steps=config.longest_episode_agent_steps,
        agent_steps=agent_steps,
        annealing_agent_steps=annealing,
        is_forked=is_forked,
    )


def default_config(algorithm: Algorithm, environment: Environment) -> dict[str, Any]:
    """The algorithm's default settings in this environment, as JSON values."""
    special = {n: v for n, v in environment.config_defaults.items() if n in algorithm.config.model_fields}
    return algorithm.defaults(environment.observation, environment.actions) | special


def _section(
    model: type[M],
    value: Any,
    name: str,
    problems: list[FieldProblem],
    paths: Mapping[str, str] = MappingProxyType({}),
) -> M | None:
    """A validated section; `paths`, from `paths_by_name`, is for problems that name the right section."""
    if not isinstance(value, dict):
        problems.append(FieldProblem(field=name, message=_NOT_AN_OBJECT[name]))
        return None
    # Of thousands of unknown fields only the first ones are named.
    further = set([field for field in value if field not in model.model_fields][MAX_PROBLEMS:])
    try:
        return model.model_validate({field: held for field, held in value.items() if field not in further})
    except ValidationError as error:
        problems += explain(point_elsewhere(problems_of(error, name), name, paths), model.model_fields)
        return None


def _look_up(kind: str, name: Any, known: dict[str, Any], problems: list[FieldProblem]) -> Any:
    if isinstance(name, str) and name in known:
        return known[name]
    if name is None:
        message = "is required"
    elif not isinstance(name, str):
        message = f"must be text, got {quoted(name)}"
    elif not name:
        message = "must not be empty"
    elif ":" in name:
        message = "ids of the form module:Env import code and are not allowed; use a registered id"
    elif len(known) <= _MAX_LISTED:
        message = f"unknown {kind} {quoted(name)}; use one of {', '.join(known)}"
    else:
        message = f"unknown {kind} {quoted(name)}; " + (
            f"did you mean {' or '.join(similar)}?"
            if (similar := similar_ids(name, known))
            else f"the form for new runs and GET /api/v1/{kind}s list the ids"
        )
    problems.append(FieldProblem(field=kind, message=message))
    return None


def is_custom(environment: Any) -> bool:
    """Whether this is an id of a custom environment, whose hosts describe it."""
    return isinstance(environment, str) and environment.startswith(ENVIRONMENT_PREFIX)


def _environment(data: dict[str, Any], problems: list[FieldProblem]) -> Environment | None:
    name, custom = data.get("environment"), data.get("custom")
    if is_custom(name):
        described = None if custom is None else _section(CustomEnvironment, custom, "custom", problems)
        if described is not None and described.id == name:
            return described.environment()
        message = f"no host has the custom environment {quoted(name)}"
        problems.append(FieldProblem(field="environment", message=message))
        return None
    if custom is not None:
        message = "only a custom environment has a description"
        problems.append(FieldProblem(field="custom", message=message))
    registered: Environment | None = _look_up("environment", name, ENVIRONMENTS, problems)
    return registered


def change_live(spec: RunSpec, changes: dict[str, Any]) -> RunSpec:
    """The specification with some settings of its algorithm changed while it trains.

    Args:
        spec: the current specification of the run.
        changes: setting name -> new value; live settings only.

    Raises:
        InvalidSpec: with one problem per setting that cannot be changed live or whose value is invalid.
    """
    live = marked_fields(type(spec.config), "live")
    fields = type(spec.config).model_fields
    fixed = f"cannot be changed while the run trains; {_listed(live)} can"
    problems = [
        FieldProblem(field=f"config.{name}", message=fixed)
        for name in changes
        if name in fields and name not in live
    ]
    problems += unknown_fields([f"config.{name}" for name in changes if name not in fields], fields)
    if problems:
        raise InvalidSpec(problems)
    data = spec.model_dump(mode="json")
    return parse_run_spec(data | {"config": data["config"] | changes})


def in_declared_order(spec: dict[str, Any]) -> dict[str, Any]:
    """A RunSpec's JSON with its fields in the order of the models; PostgreSQL stores them in another one."""
    algorithm, environment = ALGORITHMS.get(spec["algorithm"]), ENVIRONMENTS.get(spec["environment"])
    models: dict[str, type[BaseModel]] = {
        "config": algorithm.config if algorithm else AlgorithmConfig,
        "environment_config": environment.config if environment else CustomConfig,
        "stop": StopSpec,
    }
    sections = {name: _ordered(spec[name], model) for name, model in models.items() if name in spec}
    return _ordered(spec | sections, RunSpec)


def _ordered(values: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    return {name: values[name] for name in model.model_fields if name in values} | values


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def parse_run_spec(data: dict[str, Any]) -> RunSpec:
    """Validate a request and fill in its defaults, which may depend on algorithm and environment.

    The problem of a field that is in the wrong section names the right one.

    Args:
        data: JSON values, with the fields of `RunSpec`; `algorithm`, `environment` and `stop` are
            required. For a custom environment, `custom` is its host's description of it; without `package`,
            the installed one is filled in.

    Raises:
        InvalidSpec: with the problems of all fields, up to `MAX_PROBLEMS`. Sections are validated as far
            as algorithm and environment are known: `config` needs both, `environment_config` the environment.
    """
    problems: list[FieldProblem] = []
    algorithm = _look_up("algorithm", data.get("algorithm"), ALGORITHMS, problems)
    environment = _environment(data, problems)
    models = _models(algorithm, environment)
    paths = paths_by_name(models, REQUEST_FIELDS)
    sections: dict[str, Any] = {}
    if algorithm and data.get("device") == "cuda" and "cuda" not in algorithm.devices:
        message = f"{algorithm.title} trains on CPUs only: use auto or cpu"
        problems.append(FieldProblem(field="device", message=message))
    if algorithm and environment:
        problems += _misfits(algorithm, environment)
        given = data.get("config", {})
        if isinstance(given, dict):
            given = default_config(algorithm, environment) | given
        sections["config"] = _section(algorithm.config, given, "config", problems, paths)
    if environment:
        given = data.get("environment_config", {})
        sections["environment_config"] = _section(
            environment.config, given, "environment_config", problems, paths
        )
        problems += _refusals(environment, sections)
    sections["stop"] = _section(StopSpec, data.get("stop", {}), "stop", problems, paths)
    if sections["stop"] and not sections["stop"].model_dump(exclude_none=True):
        message = "set at least one limit: agent_steps, wall_time_s or score"
        problems.append(FieldProblem(field="stop", message=message))
    if environment and all(sections.get(name) is not None for name in SECTIONS):
        problems += _conflicts(environment, sections, data.get("annealing_agent_steps"))
    try:
        # The sections are validated already; this validates the other fields.
        valid = {name: section for name, section in sections.items() if section is not None}
        valid["package"] = data.get("package") or (algorithm and algorithm.package)
        spec = RunSpec.model_validate({k: v for k, v in data.items() if k not in SECTIONS} | valid)
    except ValidationError as error:
        # A missing section has a problem already, or its algorithm or environment has.
        explained = {*SECTIONS, *(problem.field for problem in problems)}
        further = [problem for problem in problems_of(error) if problem.field not in explained]
        problems += point_into_sections(further, models, REQUEST_FIELDS)
        raise InvalidSpec(problems) from None
    if problems:
        raise InvalidSpec(problems)
    return spec


def _misfits(algorithm: Algorithm, environment: Environment) -> Iterator[FieldProblem]:
    """Why the algorithm cannot train in the environment."""
    if environment.observation not in algorithm.observations:
        message = f"{algorithm.title} does not support {environment.observation} observations"
        yield FieldProblem(field="environment", message=message)
    if environment.actions not in algorithm.actions:
        chosen = " or ".join(algorithm.actions)
        message = f"{algorithm.title} supports {chosen} actions, not {environment.actions}"
        yield FieldProblem(field="environment", message=message)


def _refusals(environment: Environment, sections: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """The settings and the protocol of evaluations that the environment does not have."""
    if config := sections["environment_config"]:
        for name, message in environment.refusals(config).items():
            yield FieldProblem(field=f"environment_config.{name}", message=message)
    protocol = getattr(sections.get("config"), "evaluation_protocol", "auto")
    if refusal := environment.protocol_refusal(protocol):
        yield FieldProblem(field="config.evaluation_protocol", message=refusal)


def _conflicts(
    environment: Environment, sections: Mapping[str, Any], annealing_agent_steps: Any
) -> Iterator[FieldProblem]:
    """The settings of the algorithm that do not fit the rest of the run.

    Args:
        environment: the environment.
        sections: all sections, which are valid.
        annealing_agent_steps: as requested, not validated: `conflicts` may only ask whether it is None.
    """
    agent_steps = sections["stop"].agent_steps
    facts = _facts(
        environment, sections["environment_config"], agent_steps, annealing_agent_steps or agent_steps
    )
    for field, message in sections["config"].conflicts(facts).items():
        yield FieldProblem(field=field, message=message)


def _models(algorithm: Algorithm | None, environment: Environment | None) -> dict[str, type[BaseModel]]:
    """The models of the sections, as far as they are known."""
    models: dict[str, type[BaseModel]] = {"stop": StopSpec}
    if algorithm:
        models["config"] = algorithm.config
    if environment:
        models["environment_config"] = environment.config
    return models
