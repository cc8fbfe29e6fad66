"""Default names of runs: algorithm, environment, changed settings and seed."""

from collections.abc import Mapping, Sequence
from typing import Any

from backend.specs.algorithms import ALGORITHMS, AlgorithmConfig
from backend.specs.host_commands import CommandSpec
from backend.specs.run import RunSpec, default_config
from backend.specs.run_fields import MAX_NAME

_NAMED_CHANGES = 3


def default_name(spec: RunSpec | CommandSpec, named: Sequence[str] = ()) -> str:
    """Algorithm, environment, changes from the defaults or from the nearest preset, and seed.

    Args:
        spec: the specification.
        named: settings that the name contains first, whatever their values are.
    """
    if isinstance(spec, CommandSpec):
        plain = {name: parameter.default for name, parameter in spec.command.parameters.items()}
        others = [name for name, value in spec.config.items() if value != plain[name] and name not in named]
        changes = _limited([_change(name, spec.config[name]) for name in others])
        tail = f" seed {spec.seed}" if spec.command.seed else ""
        return ending_in(tail, " ".join([spec.command.name, *_values(spec, named), *changes]))
    algorithm, environment = ALGORITHMS[spec.algorithm], spec.catalogue_environment
    plain = environment.config().model_dump(mode="json") | default_config(algorithm, environment)
    starting_points = {(): plain} | {
        (preset.id,): plain | preset.environment_config | preset.config
        for preset in algorithm.presets
        if preset.suits(environment)
    }
    changed = {preset: _changes(spec.config_values, settings) for preset, settings in starting_points.items()}
    nearest = min(changed, key=lambda preset: len(changed[preset]))
    parts = [spec.algorithm, spec.environment.removeprefix("ALE/"), *nearest, *_values(spec, named)]
    others = [change for change in changed[nearest] if change.partition("=")[0] not in named]
    return ending_in(f" seed {spec.seed}", " ".join([*parts, *_limited(others)]))


def grid_name(spec: RunSpec | CommandSpec, paths: Sequence[str], n_seeds: int) -> str:
    """A name with the values of a grid's fields: the given one followed by them, or a default name.

    Args:
        spec: the specification.
        paths: paths of the grid's fields, such as `config.learning_rate`.
        n_seeds: seeds of each combination; if there are several, the name ends in the spec's seed.
    """
    names = [path.partition(".")[2] for path in paths]
    if spec.name is None:
        return default_name(spec, names)
    seed = f" seed {spec.seed}" if n_seeds > 1 else ""
    values = " ".join(["", *_values(spec, names)])[: MAX_NAME - len(seed)]
    return ending_in(values + seed, spec.name).strip()


def script_name(name: str, settings: Mapping[str, Any], seed: int | None) -> str:
    """The name of a run of a sweep whose script somebody starts: the given one, its settings by field path,
    and its seed."""
    values = [_change(path.partition(".")[2], value) for path, value in settings.items()]
    return ending_in("" if seed is None else f" seed {seed}", " ".join([name, *values]))


def fork_name(parent: str, before: RunSpec, after: RunSpec) -> str:
    """The parent's name and the changed settings."""
    return ending_in(
        " ".join(["", "fork", *_limited(_changes(after.config_values, before.config_values))]), parent
    )


def ending_in(tail: str, name: str) -> str:
    """`name` with `tail` appended. A name that is too long is cut before the tail."""
    return name[: MAX_NAME - len(tail)] + tail


def _changes(settings: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """`name=value` of each changed setting, with the settings that all algorithms share last."""
    names = [name for name, value in settings.items() if before.get(name) != value]
    return [
        _change(name, settings[name])
        for name in sorted(names, key=lambda name: name in AlgorithmConfig.model_fields)
    ]


def _change(name: str, value: Any) -> str:
    return f"{name}={value:.12g}" if isinstance(value, float) else f"{name}={value}"


def _values(spec: RunSpec | CommandSpec, names: Sequence[str]) -> list[str]:
    limits = spec.stop.model_dump() if isinstance(spec, RunSpec) else {}
    settings = spec.config_values | limits
    return [_change(name, settings[name]) for name in names if name in settings]


def _limited(changes: list[str]) -> list[str]:
    rest = len(changes) - _NAMED_CHANGES
    return [*changes[:_NAMED_CHANGES], *([f"+{rest}"] if rest > 0 else [])]
