"""What runs are called that nobody named: so that two that differ in a few settings can be told apart."""

from typing import Any

from backend.specs.algorithms import ALGORITHMS, AlgorithmConfig
from backend.specs.run import MAX_NAME, RunSpec, default_config

_NAMED_CHANGES = 3


def default_name(spec: RunSpec) -> str:
    """By method, world, what was changed from the defaults or from the nearest preset, and seed."""
    algorithm, world = ALGORITHMS[spec.algorithm], spec.world
    plain = world.config().model_dump(mode="json") | default_config(algorithm, world)
    begun_from = {(): plain} | {
        (preset.id,): plain | preset.environment_config | preset.config
        for preset in algorithm.presets
        if preset.observation == world.observation
        and (not preset.families or world.family in preset.families)
    }
    changed = {preset: _changes(spec.settings, settings) for preset, settings in begun_from.items()}
    nearest = min(changed, key=lambda preset: len(changed[preset]))
    parts = [spec.algorithm, spec.environment.removeprefix("ALE/"), *nearest, *_shortened(changed[nearest])]
    return ending_in(f" seed {spec.seed}", " ".join(parts))


def fork_name(parent: str, before: RunSpec, after: RunSpec) -> str:
    """By its parent's name and what was changed."""
    return ending_in(" ".join(["", "fork", *_shortened(_changes(after.settings, before.settings))]), parent)


def ending_in(tail: str, name: str) -> str:
    """The name, and behind it what tells it from others; where that is too long, the name is cut."""
    return name[: MAX_NAME - len(tail)] + tail


def _changes(settings: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """`name=value`; the settings that every algorithm has come last."""
    names = [name for name, value in settings.items() if before.get(name) != value]
    return [
        f"{name}={settings[name]:.12g}" if isinstance(settings[name], float) else f"{name}={settings[name]}"
        for name in sorted(names, key=lambda name: name in AlgorithmConfig.model_fields)
    ]


def _shortened(changes: list[str]) -> list[str]:
    rest = len(changes) - _NAMED_CHANGES
    return [*changes[:_NAMED_CHANGES], *([f"+{rest}"] if rest > 0 else [])]
