"""What one may ask for: a run's specification, checked whole before anything is stored or started."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field as PydanticField
from pydantic import SerializeAsAny, StringConstraints, ValidationError

from backend.specs.algorithms import ALGORITHMS, Algorithm, AlgorithmConfig
from backend.specs.algorithms.ga3c import Ga3cConfig
from backend.specs.environments import ENVIRONMENTS, Environment, EnvironmentConfig
from backend.specs.environments.atari import AtariConfig
from backend.specs.environments.own import PREFIX, OwnWorld
from backend.specs.fields import Frozen, Strict, marked, setting

MAX_SEED = 2**31 - 1
MAX_NAME = 200

M = TypeVar("M", bound=Frozen)

Tag = Annotated[str, StringConstraints(min_length=1, max_length=50, pattern=r'^[^"\\\x00-\x1f]*$')]
"""A word to find runs by; without quotes, backslashes and control characters."""


class FieldProblem(Frozen):
    """One thing wrong with one field, in words a person can act on."""

    field: str
    """Dotted path from the root of the request, such as `config.n_e`."""
    message: str


class InvalidSpec(ValueError):
    """A specification that cannot be run; `problems` names each field at fault."""

    def __init__(self, problems: list[FieldProblem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))
        self.problems = problems


class StopSpec(Strict):
    """When a run is finished: whichever bound is met first. At least one is needed."""

    agent_steps: int | None = setting(
        None,
        ge=1,
        le=10**12,
        title="Agent steps",
        group="stopping",
        unit="agent steps",
        description="Decisions in all, over all environments.",
    )
    wall_time_s: float | None = setting(
        None,
        gt=0,
        le=10**8,
        title="Training time",
        group="stopping",
        unit="s",
        description="Training time summed over attempts, evaluation excluded.",
    )
    score: float | None = setting(
        None,
        title="Score",
        group="stopping",
        description="Mean true return of the last 100 training episodes.",
    )


MAX_EVALUATION_ENVIRONMENTS = 64
"""An evaluation plays at most so many episodes at a time."""

# What parts of an engine were seen to take, rounded up.
_ENGINE_BYTES = 500 * 2**20
_PROCESS_BYTES = 150 * 2**20
_PIXEL_DECISION_BYTES = 260 * 2**10
"""A state as bytes and as floats, and its activations: 160 kB for `nips`, 214 kB for `nature`."""
_VECTOR_DECISION_BYTES = 4 * 2**10
_PICTURE_BYTES = 84 * 84
"""A replayed decision of a world that stacks its pictures; of others' colours, three times as much."""
_VECTOR_BYTES = 512


class RunSpec(Strict):
    """Everything an engine needs to know. Build it with `parse_run_spec`."""

    name: str | None = PydanticField(default=None, max_length=MAX_NAME)
    algorithm: str
    environment: str
    config: SerializeAsAny[AlgorithmConfig]
    environment_config: SerializeAsAny[EnvironmentConfig]
    own: OwnWorld | None = None
    """What a host says of its own world, where the environment is one."""
    seed: int = PydanticField(default=0, ge=0, le=MAX_SEED)
    stop: StopSpec
    device: Literal["auto", "cpu", "cuda"] = "auto"
    queue: Literal["cpu", "gpu"] = "cpu"
    host: str | None = PydanticField(default=None, max_length=200)
    priority: int = PydanticField(default=0, ge=-100, le=100)
    group: str | None = PydanticField(default=None, max_length=200)
    tags: tuple[Tag, ...] = PydanticField(default=(), max_length=50, strict=False)
    notes: str = PydanticField(default="", max_length=20_000)

    @property
    def world(self) -> Environment:
        """The environment as the catalogue has it."""
        return self.own.environment() if self.own is not None else ENVIRONMENTS[self.environment]

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the environment and of the algorithm, as plain JSON values."""
        return self.environment_config.model_dump(mode="json") | self.config.model_dump(mode="json")

    @property
    def memory_estimate_bytes(self) -> int:
        """A safe guess at the engine's memory: processes, kept activations, emulators, evaluation's too."""
        config = self.config.model_dump()
        t_max = int(config.get("t_max", 1))
        environments = int(config.get("n_e", config.get("n_actors", 1)))
        if isinstance(self.config, Ga3cConfig):
            environments = self.config.most_actors
        processes = 1 + min(int(config.get("n_w", environments)), environments)
        evaluated = min(self.config.evaluation_episodes, MAX_EVALUATION_ENVIRONMENTS)
        pixels = self.world.observation == "pixels"
        decision = _PIXEL_DECISION_BYTES if pixels else _VECTOR_DECISION_BYTES
        emulator = self.world.memory_bytes
        return (
            _ENGINE_BYTES
            + processes * _PROCESS_BYTES
            + environments * (t_max + 2) * decision
            + (environments + evaluated) * emulator
            + self._replay_bytes
        )

    @property
    def _replay_bytes(self) -> int:
        """Of a replay memory, as full as the run can make it."""
        capacity = int(self.config.model_dump().get("replay_capacity", 0))
        if self.stop.agent_steps is not None:
            capacity = min(capacity, self.stop.agent_steps)
        if self.world.observation == "vector":
            return capacity * _VECTOR_BYTES
        stacks = isinstance(self.environment_config, AtariConfig)
        return capacity * _PICTURE_BYTES * (1 if stacks else 3)


def default_config(algorithm: Algorithm, world: Environment) -> dict[str, Any]:
    """The algorithm's settings in this world where nobody asks for others, as plain JSON values."""
    special = {n: v for n, v in world.config_defaults.items() if n in algorithm.config.model_fields}
    return algorithm.defaults(world.observation, world.actions) | special


def _problems(error: ValidationError, prefix: str = "") -> list[FieldProblem]:
    found = []
    for item in error.errors(include_url=False, include_context=False):
        path = ".".join([prefix, *(str(part) for part in item["loc"])] if prefix else map(str, item["loc"]))
        message = item["msg"].replace("String should have", "must have")
        if item["type"] == "extra_forbidden":
            message = "no such setting"
        elif item["type"] not in ("missing",):
            message = f"{message}, got {item['input']!r:.80}"
        found.append(FieldProblem(field=path or "body", message=message[0].lower() + message[1:]))
    return found


def _section(model: type[M], value: Any, name: str, problems: list[FieldProblem]) -> M | None:
    if not isinstance(value, dict):
        problems.append(FieldProblem(field=name, message="should be an object of settings"))
        return None
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems += _problems(error, name)
        return None


def _known(kind: str, name: Any, known: dict[str, Any], problems: list[FieldProblem]) -> Any:
    if isinstance(name, str) and name in known:
        return known[name]
    if isinstance(name, str) and ":" in name:
        message = "the form module:Env runs code and is refused; ask for a registered id"
    elif name is None:
        message = "field required"
    else:
        message = f"unknown {kind} {name!r:.80}; GET /api/v1/{kind}s lists what there is"
    problems.append(FieldProblem(field=kind, message=message))
    return None


def _world(data: dict[str, Any], problems: list[FieldProblem]) -> Environment | None:
    name, own = data.get("environment"), data.get("own")
    if isinstance(name, str) and name.startswith(PREFIX):
        described = None if own is None else _section(OwnWorld, own, "own", problems)
        if described is not None and described.id == name:
            return described.environment()
        problems.append(
            FieldProblem(field="environment", message=f"no host has a world of its own {name!r:.80}")
        )
        return None
    if own is not None:
        problems.append(FieldProblem(field="own", message="only a host's own world has a description"))
    found: Environment | None = _known("environment", name, ENVIRONMENTS, problems)
    return found


def changed_live(spec: RunSpec, changes: dict[str, Any]) -> RunSpec:
    """The specification with some settings of its algorithm changed while it trains.

    Args:
        spec: what the run trains by now.
        changes: setting name -> new value, each a live field.

    Raises:
        InvalidSpec: naming each setting that cannot be changed live, or whose value is not allowed.
    """
    live = marked(type(spec.config), "live")
    problems = [
        FieldProblem(
            field=f"config.{name}", message=f"cannot be changed on a running run; {_listed(live)} can"
        )
        for name in changes
        if name not in live
    ]
    if problems:
        raise InvalidSpec(problems)
    data = spec.model_dump(mode="json")
    return parse_run_spec(data | {"config": data["config"] | changes})


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def parse_run_spec(data: dict[str, Any]) -> RunSpec:
    """Check a request and fill in its defaults, which may depend on algorithm and world.

    Args:
        data: plain JSON values, with the fields of `RunSpec`; `config`, `environment_config` and
            `seed` may be left out. For a host's own world, `own` is that host's description of it.

    Raises:
        InvalidSpec: naming every field at fault at once.
    """
    problems: list[FieldProblem] = []
    algorithm = _known("algorithm", data.get("algorithm"), ALGORITHMS, problems)
    world = _world(data, problems)
    parts: dict[str, Any] = {}
    if algorithm and data.get("device") == "cuda" and "cuda" not in algorithm.devices:
        message = f"{algorithm.title} trains on CPUs only: leave it at auto, or ask for cpu"
        problems.append(FieldProblem(field="device", message=message))
    if algorithm and world:
        if world.observation not in algorithm.observations:
            message = f"{algorithm.title} cannot learn from {world.observation}"
            problems.append(FieldProblem(field="environment", message=message))
        if world.actions not in algorithm.actions:
            message = (
                f"{algorithm.title} chooses {' or '.join(algorithm.actions)} actions, not {world.actions}"
            )
            problems.append(FieldProblem(field="environment", message=message))
        asked = data.get("config", {})
        if isinstance(asked, dict):
            asked = default_config(algorithm, world) | asked
        parts["config"] = _section(algorithm.config, asked, "config", problems)
        network = getattr(parts["config"], "network", None)
        if network is not None and (network == "mlp") != (world.observation == "vector"):
            right = "mlp" if world.observation == "vector" else "nips or nature"
            message = f"{world.id} has {world.observation} observations: use {right}, not {network}"
            problems.append(FieldProblem(field="config.network", message=message))
    if world:
        asked = data.get("environment_config", {})
        parts["environment_config"] = _section(world.config, asked, "environment_config", problems)
        if parts["environment_config"]:
            problems += [
                FieldProblem(field=f"environment_config.{name}", message=message)
                for name, message in world.refusals(parts["environment_config"]).items()
            ]
        network = getattr(parts.get("config"), "network", "compact")
        if getattr(parts["environment_config"], "picture_size", "84x84") == "42x42" and network != "compact":
            message = f"{network} sees pictures of 84x84; compact sees smaller ones"
            problems.append(FieldProblem(field="environment_config.picture_size", message=message))
    parts["stop"] = _section(StopSpec, data.get("stop", {}), "stop", problems)
    if parts["stop"] and not parts["stop"].model_dump(exclude_none=True):
        message = "give at least one bound: agent_steps, wall_time_s or score"
        problems.append(FieldProblem(field="stop", message=message))
    annealed = getattr(parts.get("config"), "learning_rate_schedule", "constant") == "linear"
    if annealed and parts["stop"] and parts["stop"].agent_steps is None:
        message = "a linear learning rate needs an agent-step bound to reach 0 at"
        problems.append(FieldProblem(field="stop.agent_steps", message=message))
    rest = {k: v for k, v in data.items() if k not in ("config", "environment_config", "stop")}
    try:
        # The checked sections stand in for themselves while the other fields are checked.
        spec = RunSpec.model_validate(
            rest
            | {
                "config": parts.get("config") or AlgorithmConfig(),
                "environment_config": parts.get("environment_config") or EnvironmentConfig(),
                "stop": parts["stop"] or StopSpec(),
            }
        )
    except ValidationError as error:
        named = {p.field for p in problems}
        problems += [p for p in _problems(error) if p.field not in named]
        raise InvalidSpec(problems) from None
    if problems:
        raise InvalidSpec(problems)
    return spec
