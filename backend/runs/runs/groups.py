"""Which runs form a group, and which may be compared.

Runs that differ only in their seed form a group, if their algorithm and their seed are known. A longer run
belongs to it too, unless its learning rate is annealed over its length; one that trained otherwise than its
specification says does not (`backend.specs.departures`). Scores may be compared when they were measured
in the same way: the same environment, protocol and evaluation config.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar, cast

from backend.db import Run
from backend.db.run import is_whole
from backend.platform.caching import Cache, CacheKind
from backend.runs.runs.external_spec import UNKNOWN, is_external, is_seed_name, seed_value
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS, Environment, PublishedScore
from backend.specs.environments.custom import CustomEnvironment
from backend.specs.problems import InvalidSpec
from backend.specs.protocols import environment_settings
from backend.specs.run import default_config, parse_run_spec
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import BROKEN_OFF, RunState

T = TypeVar("T")

_LEARNING_ONLY = frozenset({"life_loss_terminal", "frame_maximum", "normalise"})
"""Environment settings that affect learning, but neither the scores nor what the agent observes."""
_OBSERVING_AND_CHOOSING = frozenset({"observation_size", "crop", "frame_skip"})
"""Environment settings of what an agent observes and how often it chooses: those of a random agent, which
observes nothing, are its own affair."""


class Brief(NamedTuple):
    """What lists of groups need of a run: its row would take ten times as long to load."""

    id: str
    revision: int
    origin: str
    algorithm: str
    environment: str
    group: str | None
    seed: int
    state: RunState
    host: str | None
    queue: str
    score: float | None
    best_return: float | None
    agent_steps: int
    step_unit: str
    parent_id: str | None
    forked_at_agent_steps: int | None
    name: str
    departures: dict[str, Any]
    early_agent_steps: int
    spec_text: str | None = None
    """Its specification, as the database has it; None: it was not read."""

    @property
    def spec(self) -> dict[str, Any]:
        """Its specification, if it was read; empty if that is damaged."""
        try:
            spec = json.loads(self.spec_text or "null")
        except ValueError:
            return {}
        return spec if isinstance(spec, dict) else {}


GroupedRun = Run | Brief
ComputeKeys = Callable[[Sequence[GroupedRun]], Mapping[str, str]]
"""Computes the group's key of each of these runs, by id."""

ReadSpecs = Callable[[Sequence[Brief]], Iterable[Brief]]
"""Yields runs with their specifications."""


COMPUTED = CacheKind[tuple[str, str], tuple[int, Any]](50_000)
"""By run and name of what is computed: the run's revision, which changes with its spec, and the value."""


@dataclass(frozen=True)
class Specs:
    """Reads specifications that were not read, and keeps what follows from them."""

    read: ReadSpecs
    computed: Cache[tuple[str, str], tuple[int, Any]]


def compute_once(
    runs: Sequence[Brief],
    name: str,
    compute: Callable[[Brief], T],
    specs: Specs | None = None,
    max_characters: int | None = None,
) -> dict[str, T]:
    """What follows from each run's own specification and training, by the run's id; computed once for each
    revision.

    Args:
        runs: the runs.
        name: name of what is computed.
        compute: computes the value from a run with its specification.
        specs: by default all were read, and nothing is kept.
        max_characters: of a longer specification the value is not kept.
    """
    kept = specs.computed.known([(run.id, name) for run in runs]) if specs else {}
    values: dict[str, T] = {}
    unknown, new = [], {}
    for run in runs:
        revision, value = kept.get((run.id, name), (None, None))
        if revision == run.revision:
            values[run.id] = cast("T", value)
        else:
            unknown.append(run)
    for run in specs.read(unknown) if specs and unknown else unknown:
        value = values[run.id] = compute(run)
        if max_characters is None or len(run.spec_text or "") <= max_characters:
            new[run.id, name] = run.revision, value
    if specs:
        specs.computed.put(new)
    return values


def keys_of(runs: Sequence[GroupedRun], specs: Specs | None = None) -> dict[str, str]:
    """The group's key of each run, by id."""
    briefs = [run for run in runs if isinstance(run, Brief)]
    keys = compute_once(briefs, "key", group_key, specs)
    return keys | {run.id: group_key(run) for run in runs if not isinstance(run, Brief)}


def configs_of(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings of algorithm and environment; settings that are newer than the run have their defaults.

    How the environment of an external run is set up is not known: the defaults are assumed. Damaged
    specifications have no settings.
    """
    if not is_whole(spec):
        return {"config": {}, "environment_config": {}}
    config, environment_config = defaults(*defaults_key(spec))
    if is_external(spec):
        return {"config": spec["config"], "environment_config": environment_config}
    return {
        "config": config | spec["config"],
        "environment_config": environment_config | spec["environment_config"],
    }


def defaults_key(spec: dict[str, Any]) -> tuple[str, str, str]:
    """The arguments of `defaults` for a specification."""
    if is_external(spec):
        return "", spec["environment"], "null"
    return spec["algorithm"], spec["environment"], json.dumps(spec.get("custom"), sort_keys=True)


@lru_cache(1_000)
def defaults(algorithm: str, environment: str, custom: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The defaults of the settings of algorithm and environment; an external run's algorithm, named by an
    empty text, has none.

    Args:
        algorithm: its id.
        environment: its id.
        custom: the host's description of a custom environment, as JSON.
    """
    described = json.loads(custom)
    entry = (
        CustomEnvironment.model_validate(described).environment()
        if described
        else ENVIRONMENTS.get(environment)
    )
    known = ALGORITHMS.get(algorithm)
    return (
        default_config(known, entry) if known and entry else {},
        entry.config().model_dump(mode="json") if entry else {},
    )


def group_key(run: GroupedRun) -> str:
    """A hash of algorithm, environment, group, settings, the steps to which the learning rate is annealed and
    the departures from all these: equal for runs that differ in nothing else, such as seed, name, host or
    limits. A run whose algorithm or seed is not known has a key of its own."""
    spec = run.spec
    if not is_whole(spec):
        return "damaged"
    names = ("algorithm", "environment", "group", *(("origin",) if is_external(spec) else ()))
    parts = {name: spec.get(name) for name in names} | measures(spec)
    parts |= {"departures": run.departures} if run.departures else {}
    parts |= {} if is_sample(spec) else {"run": run.id}
    configs = configs_of(spec)
    if is_external(spec):
        config = without_seed(spec)
        details = spec.get("config_details") or {}
        configs["config"] = {name: json_number(value) for name, value in config.items()}
        parts["config_details"] = {name: details[name] for name in config if name in details}
    text = json.dumps(parts | configs | annealing(spec, configs["config"]), sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def measures(spec: dict[str, Any]) -> dict[str, Any]:
    """The return metric and the unit of steps that an external run specifies; empty for other runs."""
    if not is_external(spec):
        return {}
    return {name: spec[name] for name in ("return_metric", "step_unit") if spec.get(name)}


def is_sample(spec: dict[str, Any]) -> bool:
    """Whether both the algorithm and the seed of a run are known: else it is no sample beside others."""
    return not is_external(spec) or (spec["algorithm"] != UNKNOWN and bool(spec.get("seed_is_known", True)))


def without_seed(spec: dict[str, Any]) -> dict[str, Any]:
    """The settings of an external run without its seed: those whose last name ends in `seed` and whose value
    is that of the run."""
    return {
        name: value
        for name, value in spec["config"].items()
        if not (is_seed_name(name) and seed_value(value) == spec["seed"])
    }


def json_number(value: Any) -> Any:
    """The value with 1.0 as 1: JSON has one type of numbers."""
    if isinstance(value, list):
        return [json_number(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def annealing(spec: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Agent steps over which the learning rate falls to 0; empty if it is constant or the run is external."""
    if is_external(spec) or config.get("learning_rate_schedule") != "linear":
        return {}
    return {"annealing_agent_steps": spec.get("annealing_agent_steps") or spec["stop"].get("agent_steps")}


def unbroken(runs: Collection[GroupedRun]) -> set[str]:
    """Ids of the runs that have not broken off; of all if every one has: then their ends are the best
    known."""
    return {run.id for run in runs if run.state not in BROKEN_OFF} or {run.id for run in runs}


def is_early(run: GroupedRun) -> bool:
    """Whether its training score is that of the first, short episodes."""
    return bool(run.early_agent_steps) and run.early_agent_steps >= run.agent_steps


def surplus_runs(
    runs: Iterable[GroupedRun],
    roots: Mapping[str, str],
    scored: Collection[str] | None = None,
    keys: ComputeKeys = keys_of,
) -> dict[str, str]:
    """The runs that are not further samples, each with the one of its group that counts in its place.

    A lineage, which is a run with its forks and theirs, is one sample, whatever the method and the seeds: its
    runs share the training up to a checkpoint. So are the runs of a deterministic method with equal seeds:
    they are the same training. Of the runs with a score the one that trained furthest counts, of equals the
    latest.

    Args:
        runs: runs of any groups.
        roots: for each run, the first run of its lineage, which may not be among these: `lineage_roots`.
        scored: ids of the runs that have the score in question; default: those with a `score`.
        keys: computes the keys of groups; default: from specifications that have been read.
    """
    several = list(runs)
    if scored is None:
        scored = {run.id for run in several if run.score is not None}
    forks = _surplus_by_sample(several, lambda run: roots[run.id], scored, keys)
    seeds = [run for run in several if run.id not in forks and _is_deterministic(run)]
    return forks | _surplus_by_sample(seeds, lambda run: run.seed, scored, keys)


def _is_deterministic(run: GroupedRun) -> bool:
    known = ALGORITHMS.get(run.algorithm) if run.origin != EXTERNAL else None
    return known is not None and known.reproducibility != "none"


def _surplus_by_sample(
    runs: Iterable[GroupedRun],
    sample: Callable[[GroupedRun], str | int],
    scored: Collection[str],
    keys: ComputeKeys,
) -> dict[str, str]:
    """The runs that do not count: in each group and sample, all but the one that trained furthest."""
    alike: dict[tuple[str, str, str | int], list[GroupedRun]] = {}
    for run in runs:
        alike.setdefault((run.algorithm, run.environment, sample(run)), []).append(run)
    # Keys of groups take time to compute, and a list may have thousands of runs.
    several = [similar_runs for similar_runs in alike.values() if len(similar_runs) > 1]
    key_of = keys([run for similar_runs in several for run in similar_runs]) if several else {}
    excluded: dict[str, str] = {}
    for similar_runs in several:
        ordered = sorted(similar_runs, key=lambda run: (run.id in scored, run.agent_steps, run.id))
        # The last run of each group wins: the one that trained furthest.
        counted = {key_of[run.id]: run.id for run in ordered}
        in_place = {run.id: counted[key_of[run.id]] for run in similar_runs}
        excluded |= {run_id: other for run_id, other in in_place.items() if run_id != other}
    return excluded


def subject_key(run: Run) -> str:
    """Equal for runs of one algorithm whose training returns can be compared."""
    return json.dumps([run.origin, run.algorithm, training_key(run)])


def own_protocol(run: Run) -> str | None:
    """The protocol of a run's own evaluations; None if it has none, or if its environment or algorithm is not
    known here."""
    if run.origin == EXTERNAL:
        return None
    try:
        return parse_run_spec(run.spec).evaluation_protocol
    except InvalidSpec:
        return None


def measured_config(spec: dict[str, Any]) -> dict[str, Any]:
    """Settings of the environment as far as scores depend on them, the others with their defaults."""
    settings = configs_of(spec)["environment_config"]
    known = ALGORITHMS.get(spec.get("algorithm", "")) if is_whole(spec) and not is_external(spec) else None
    if known is None or known.learns:
        return settings
    _, standard = defaults(*defaults_key(spec))
    return settings | {name: standard[name] for name in _OBSERVING_AND_CHOOSING & standard.keys()}


def training_key(run: Run) -> str:
    """Equal for runs whose training returns can be compared: the same environment, observed alike."""
    return _scored_as(run.environment, None, measured_config(run.spec))


def evaluation_key(run: GroupedRun, protocol: str | None) -> str:
    """Equal for runs whose scores under this protocol can be compared.

    Settings of training that the protocol replaces, such as sticky actions, do not count; what the agent
    sees and does in the evaluation does: observation size, crop, action set, action repeat.
    """
    return _scored_as(run.environment, protocol, measured_config(run.spec))


def is_measured_as_published(run: GroupedRun, environment: Environment, protocol: str) -> bool:
    """Whether the run's scores under this protocol can be compared with published ones of its environment.

    Papers' scores were measured with the papers' settings, which are the defaults.
    """
    return run.environment == environment.id and is_specified_as_published(run.spec, environment, protocol)


def is_specified_as_published(spec: dict[str, Any], environment: Environment, protocol: str) -> bool:
    """Whether a run with this specification in this environment is measured as published scores were."""
    return not unlike_published(measured_config(spec), environment, protocol)


def unlike_published(
    environment_config: Mapping[str, Any], environment: Environment, protocol: str
) -> list[str]:
    """Settings of the environment by which scores cannot be compared with published ones under a protocol."""
    protocol_settings = environment_settings(protocol)
    published = environment.config().model_dump(mode="json")
    return [
        name
        for name in sorted(published.keys() | environment_config.keys())
        if name not in _LEARNING_ONLY
        and name not in protocol_settings
        and environment_config.get(name) != published.get(name)
    ]


def published_scores(runs: Sequence[tuple[Run, Collection[str]]]) -> list[PublishedScore]:
    """Published scores that can be compared with every one of these runs, which are of one environment.

    Args:
        runs: each with the protocols of its evaluations; a run without evaluations counts with its own
            protocol, which they will have.
    """
    environments = {run.environment for run, _ in runs}
    environment = ENVIRONMENTS.get(environments.pop()) if len(environments) == 1 else None
    if environment is None:
        return []
    alike = {score.protocol for score in environment.published}
    for run, used in runs:
        names: Collection[str | None] = used or {own_protocol(run)}
        alike &= {name for name in names if name and is_measured_as_published(run, environment, name)}
    return [score for score in environment.published if score.protocol in alike]


class HumanReference(NamedTuple):
    """The published scores by which scores of one environment and one protocol are normalised."""

    random: PublishedScore
    """Of a random agent: 0 %."""
    human: PublishedScore
    """Of a person: 100 %."""

    def normalised_pct(self, score: float) -> float:
        """100 (score - random) / (human - random), as in Mnih et al. 2015 and Nair et al. 2015."""
        return 100 * (score - self.random.score) / (self.human.score - self.random.score)


def human_reference(run: Run, protocol: str) -> HumanReference | None:
    """The references of the run's scores under this protocol.

    None unless a random agent and a person, who scored higher, were measured under it, in the same way.
    """
    environment = ENVIRONMENTS.get(run.environment)
    if environment is None or not is_measured_as_published(run, environment, protocol):
        return None
    random, human = (environment.published_score(label, protocol) for label in ("random", "human"))
    if random is None or human is None or human.score <= random.score:
        return None
    return HumanReference(random, human)


def _scored_as(environment: str, protocol: str | None, settings: dict[str, Any]) -> str:
    settings = settings | environment_settings(protocol)
    counted = {name: value for name, value in settings.items() if name not in _LEARNING_ONLY}
    return json.dumps([environment, protocol, counted], sort_keys=True)
