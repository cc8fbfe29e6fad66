"""A study made of runs that exist: their configurations as arms, their environments, and their seeds."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.orm import Session

from backend.db.run import is_whole
from backend.experiments.cells import repository as study_cells
from backend.experiments.cells.equal_runs import key_of_stored
from backend.experiments.cells.rows import PlannedCell
from backend.experiments.cells.sampling import random_settings
from backend.experiments.experiments import repository, service
from backend.experiments.experiments.repository import SourceRun
from backend.experiments.experiments.study import prepare
from backend.experiments.specs.study import (
    MAX_ARMS,
    MAX_CURVES,
    MAX_ENVIRONMENTS,
    Arm,
    Draws,
    StudyFigure,
    StudySpec,
)
from backend.experiments.specs.sweep import SweepSpec
from backend.experiments.studies.schemas import UnusedRunOut
from backend.platform.errors import Invalid
from backend.runs.runs.names import Named, Setting, names_in_view
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.run import RunSpec, default_config, parse_run_spec
from backend.specs.run_fields import EXTERNAL, MAX_NAME
from backend.specs.states import RunState

_MAX_LABEL = 100
"""Characters of an arm's label."""
_MAX_NAMED = 3
"""Algorithms that a study's name lists."""
_MAX_SCATTERS = 5
_COMMON: dict[str, Any] = {"device": "auto", "queue": "cpu", "annealing_agent_steps": None}
"""Fields that all runs of a study share, with their defaults."""

Source = Literal["runs", "sweep"]
"""What a study is made of; the field of the request."""


@dataclass(frozen=True)
class Draft:
    """A study before it is started."""

    spec: StudySpec
    planned: list[PlannedCell]
    equal: Mapping[str, Sequence[str]]
    """The finished runs that can fill its cells, by key."""
    n_runs: int
    """Runs that it is made of."""
    unused: list[UnusedRunOut]


def of_runs(session: Session, run_ids: Sequence[str]) -> Draft:
    """The study of some runs.

    Raises:
        Invalid: a run does not exist, or no study can have these runs.
    """
    runs = repository.source_runs(session, run_ids)
    missing = [
        FieldProblem(field=f"runs.{at}", message=f"run {run_id} does not exist or has been deleted")
        for at, run_id in enumerate(run_ids)
        if run_id not in runs
    ]
    if missing:
        raise Invalid(missing)
    return _draft(session, "runs", [runs[run_id] for run_id in dict.fromkeys(run_ids)])


def of_sweep(session: Session, sweep_id: str) -> Draft:
    """The study of a sweep's runs.

    Random configurations with one seed each are the draws of one arm; any others are arms.

    Raises:
        Invalid: there is no such sweep, or no study can have its runs.
    """
    sweep = repository.get(session, sweep_id)
    if sweep is None or sweep.kind != "sweep":
        raise Invalid.field("sweep", f"sweep {sweep_id} does not exist or has been deleted")
    spec = SweepSpec.model_validate(sweep.spec)
    rows = sorted(study_cells.rows(session, sweep_id), key=lambda row: (row.arm, row.draw))
    run_ids = [row.run_id for row in rows if row.run_id is not None]
    if not run_ids:
        raise Invalid.field("sweep", "none of its runs exists any more")
    runs = repository.source_runs(session, run_ids)
    sources = [runs[run_id] for run_id in run_ids if run_id in runs]
    if spec.sampler == "random" and spec.distinct_seeds and spec.max_seeds == 1:
        settings = [row.settings for row in repository.configurations(session, sweep_id)]
        # Configurations from before a list of values was extended are not drawn again by the longer list.
        if random_settings(spec.space, len(settings), spec.sampler_seed) == settings:
            return _check(session, "sweep", _with_random_draws(spec, len(settings)), sources, {})
    return _draft(session, "sweep", sources, name=spec.name)


def _with_random_draws(spec: SweepSpec, n: int) -> StudySpec:
    """The configurations of a random sweep as the draws of one arm."""
    run = spec.run
    algorithm = str(run.get("algorithm"))
    sections = {name: run.get(name) or {} for name in ("config", "environment_config", "stop")}
    arm = Arm.model_validate({"label": _title(algorithm), "algorithm": algorithm, **sections})
    paths = [path for path in spec.space if not path.startswith("stop.")]
    return StudySpec(
        name=spec.name,
        notes=spec.notes,
        arms=(arm,),
        environments=(str(run.get("environment")),),
        draws=Draws(
            n=n,
            seeds=tuple(spec.seed_of(at, 0) for at in range(n)),
            space=spec.space,
            sampler_seed=spec.sampler_seed,
        ),
        run={name: run[name] for name in _COMMON if run.get(name) is not None},
        figures=(
            *(
                StudyFigure(id=f"scatter-{at}", title="Scores by setting", kind="scatter", setting=path)
                for at, path in enumerate(paths[:_MAX_SCATTERS], 1)
            ),
            StudyFigure(id="sorted", title="Scores, from the best run to the worst", kind="sorted"),
        ),
        concurrency=spec.concurrency,
    )


def _draft(session: Session, source: Source, sources: Sequence[SourceRun], name: str | None = None) -> Draft:
    """A study whose arms are the configurations of runs, in the order of the runs."""
    by_key: dict[str, RunSpec | None] = {}
    seeds: set[int] = set()
    invalid: dict[str, str] = {}
    for run in sources:
        if run.origin == EXTERNAL:
            invalid[run.id] = "it was trained elsewhere"
            continue
        key = key_of_stored(run.spec | {"seed": 0}) if is_whole(run.spec) else ""
        if key not in by_key:
            by_key[key] = _parse(run.spec) if key else None
        if by_key[key] is None:
            invalid[run.id] = "its settings are no longer valid"
        else:
            seeds.add(run.seed)
    specs = [spec for spec in by_key.values() if spec is not None]
    if not specs:
        raise Invalid.field(source, f"no study can be made of them: {next(iter(invalid.values()))}")
    arms = _arms(specs)
    environments = [*dict.fromkeys(spec.environment for spec in specs)]
    if len(arms) > MAX_ARMS:
        message = f"there are {len(arms):,} configurations; a study has at most {MAX_ARMS} arms"
        raise Invalid.field(source, message)
    if len(environments) > MAX_ENVIRONMENTS:
        message = f"there are {len(environments):,} environments; a study has at most {MAX_ENVIRONMENTS}"
        raise Invalid.field(source, message)
    spec = StudySpec(
        name=name or _name(arms, environments),
        arms=tuple(arms),
        environments=tuple(environments),
        draws=_draws(sorted(seeds)),
        run=_common(specs),
        figures=tuple(_figures(arms, environments)),
    )
    return _check(session, source, spec, sources, invalid)


def _parse(spec: Mapping[str, Any]) -> RunSpec | None:
    """A run's specification; None if this version has other settings."""
    try:
        return parse_run_spec(dict(spec))
    except InvalidSpec:
        return None


def _draws(seeds: Sequence[int]) -> Draws:
    """Draws with these seeds, which are in order."""
    first, n = seeds[0], len(seeds)
    if seeds[-1] == first + n - 1:
        return Draws(n=n, first_seed=first)
    return Draws(n=n, seeds=tuple(seeds))


def _arms(specs: Sequence[RunSpec]) -> list[Arm]:
    """The different configurations, each with the settings that differ from its environment's defaults."""
    members: dict[str, tuple[Arm, list[dict[str, Any]]]] = {}
    for spec in specs:
        arm = _arm(spec)
        key = json.dumps(arm.model_dump(mode="json"), sort_keys=True)
        members.setdefault(key, (arm, []))[1].append(spec.config_values)
    changed = {name for arm, _ in members.values() for name in (*arm.config, *arm.environment_config)}
    # A default that depends on the environment is no part of an arm's name.
    view = names_in_view(
        [
            Named(
                id=key,
                algorithm=_title(arm.algorithm),
                settings={
                    Setting("run", name): value
                    for name, value in values[0].items()
                    if name in changed and all(config.get(name) == value for config in values)
                }
                | {Setting("run", name): value for name, value in arm.stop.items()},
            )
            for key, (arm, values) in members.items()
        ]
    )
    taken: Counter[str] = Counter()
    labelled = []
    for (arm, _), label in zip(members.values(), view.names, strict=True):
        cut = label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"
        taken[cut] += 1
        if taken[cut] > 1:
            number = f" #{taken[cut]}"
            cut = f"{cut[: _MAX_LABEL - len(number)]}{number}"
        labelled.append(arm.model_copy(update={"label": cut}))
    return labelled


def _arm(spec: RunSpec) -> Arm:
    """A run's configuration; its label is the algorithm's id."""
    environment = spec.catalogue_environment
    config = default_config(ALGORITHMS[spec.algorithm], environment)
    environment_config = environment.config().model_dump(mode="json")
    return Arm(
        label=spec.algorithm,
        algorithm=spec.algorithm,
        config=_differing(spec.config.model_dump(mode="json"), config),
        environment_config=_differing(spec.environment_config.model_dump(mode="json"), environment_config),
        stop=spec.stop.model_dump(mode="json", exclude_none=True),
    )


def _differing(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if name not in defaults or json.dumps(value) != json.dumps(defaults[name])
    }


def _title(algorithm: str) -> str:
    return ALGORITHMS[algorithm].title if algorithm in ALGORITHMS else algorithm


def _name(arms: Sequence[Arm], environments: Sequence[str]) -> str:
    titles = [*dict.fromkeys(_title(arm.algorithm) for arm in arms)]
    methods = ", ".join(titles) if len(titles) <= _MAX_NAMED else f"{len(titles)} algorithms"
    known = ENVIRONMENTS.get(environments[0])
    only = environments[0] if known is None else known.title
    where = only if len(environments) == 1 else f"{len(environments)} environments"
    return f"{methods} on {where}"[:MAX_NAME]


def _common(specs: Sequence[RunSpec]) -> dict[str, Any]:
    """What all runs of a study share: of each field the value that most configurations have."""
    common = {}
    for name, default in _COMMON.items():
        [(value, _)] = Counter(getattr(spec, name) for spec in specs).most_common(1)
        if value != default:
            common[name] = value
    return common


def _figures(arms: Sequence[Arm], environments: Sequence[str]) -> Iterator[StudyFigure]:
    if len(arms) * len(environments) <= MAX_CURVES:
        yield StudyFigure(id="curves", title="Learning curves", kind="curves")
    setting = _varied_number(arms)
    if setting is not None:
        yield StudyFigure(id="scatter", title="Scores by setting", kind="scatter", setting=setting)
    yield StudyFigure(id="scores", title="Scores", kind="table")


def _varied_number(arms: Sequence[Arm]) -> str | None:
    """The path of the one setting that differs between the arms, if it is a number."""
    if len(arms) < 2 or len({arm.algorithm for arm in arms}) > 1:
        return None
    sections = ("config", "environment_config", "stop")
    paths = {f"{section}.{name}" for arm in arms for section in sections for name in getattr(arm, section)}
    values = {
        path: [getattr(arm, path.partition(".")[0]).get(path.partition(".")[2]) for arm in arms]
        for path in paths
    }
    varied = [path for path, choices in values.items() if any(value != choices[0] for value in choices)]
    if len(varied) != 1 or varied[0].startswith("stop."):
        return None
    given = [value for value in values[varied[0]] if value is not None]  # None: the default
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in given)
    return varied[0] if is_number else None


def _check(
    session: Session,
    source: Source,
    spec: StudySpec,
    sources: Sequence[SourceRun],
    invalid: Mapping[str, str],
) -> Draft:
    """The study, once each of its cells is valid, with the runs that fill none of them.

    Raises:
        Invalid: an arm does not fit an environment, or there would be too many runs.
    """
    try:
        spec, planned, _ = prepare(session, spec)
    except Invalid as error:
        first = error.errors[0]
        message = (
            "no study can be made of them, in which each arm trains on each environment with each seed: "
            f"{first.field}: {first.message}"
        )
        raise Invalid.field(source, message) from None
    equal = repository.finished_runs(session, service.kinds_of(planned))
    filling: dict[str, list[str]] = {key: list(run_ids) for key, run_ids in equal.items()}
    used = {filling[cell.key].pop(0) for cell in planned if filling.get(cell.key)}
    keys = {cell.key for cell in planned}
    usable = {run_id for run_ids in equal.values() for run_id in run_ids}
    unused = [
        UnusedRunOut(
            run=run.id, name=run.name, reason=invalid.get(run.id) or _reason(spec, run, keys, usable)
        )
        for run in sources
        if run.id not in used
    ]
    return Draft(spec, planned, equal, len(sources), unused)


def _reason(spec: StudySpec, run: SourceRun, keys: Collection[str], usable: Collection[str]) -> str:
    """Why a run fills no cell of a study.

    Args:
        spec: the study.
        run: the run.
        keys: the keys of the study's cells.
        usable: ids of the finished runs that can fill a cell.
    """
    if run.state != RunState.FINISHED:
        return f"it is not finished: {run.state}"
    if run.demo:
        return "it came with the installation"
    if run.forked_at_agent_steps is not None:
        return "it was forked from another run"
    for name, default in _COMMON.items():
        own, common = run.spec.get(name, default), spec.run.get(name, default)
        if name != "queue" and own != common:
            return f"its {name} is {own}, that of the study {common}"
    if key_of_stored(run.spec) not in keys:
        return "its environment has another description now"
    if run.id in usable:
        return "another run has its settings and its seed"
    return "its settings were changed while it trained, or another version of Callboard trained it"
