"""Names that version 0.1.0 used and their current names. Stored specs and requests may hold either."""

from typing import Any

from backend.specs.protocols import MAX_FRAMES, MAX_FRAMES_5MIN
from backend.specs.run_fields import EXTERNAL

FORMER_ENVIRONMENT_PREFIX = "Own/"
ENVIRONMENT_PREFIX = "Custom/"
"""Prefix of the ids of hosts' custom environments."""

ATARI_PREFIX = "ALE/"

PRESETS = {
    ("a3c", "whole-pictures"): "full-frame",
    ("a3c", "compact-lstm"): "compact-lstm-cropped",
    ("a3c", "two-cpu-cores"): "nips-cropped",
    ("paac", "whole-pictures"): "full-frame",
    ("paac", "compact"): "compact-cropped",
    ("paac", "two-cpu-cores"): "nips-cropped",
}
"""Algorithm and former preset id -> current id."""

FORMER_CAP = "evaluation_max_frames"
"""Former setting of DQN and Gorila: the frames of their evaluation episodes. The protocol names them now."""
_FORMER_CAPS = {MAX_FRAMES_5MIN: "noop_starts_5min", MAX_FRAMES: "noop_starts"}
_CAPPED_ALGORITHMS = ("dqn", "gorila_dqn")  # closed: version 0.1.0 only

_SPEC_FIELDS = {"own": "custom"}
_ENVIRONMENT_SETTINGS = {"picture_size": "observation_size"}


def current_environment_id(environment: Any) -> Any:
    """The id with the current prefix; anything that is not a former id is returned as it is."""
    if isinstance(environment, str) and environment.startswith(FORMER_ENVIRONMENT_PREFIX):
        return ENVIRONMENT_PREFIX + environment.removeprefix(FORMER_ENVIRONMENT_PREFIX)
    return environment


def current_preset_id(algorithm: str, preset: str) -> str:
    """The current id of an algorithm's preset."""
    return PRESETS.get((algorithm, preset), preset)


def with_current_names(spec: dict[str, Any]) -> dict[str, Any]:
    """A copy of a RunSpec's JSON, or of a part of one, with every former name replaced.

    A former name next to its current name stays, so that validation reports it. An external run has no former
    names.
    """
    if spec.get("origin") == EXTERNAL:
        return spec
    found = _renamed(spec, _SPEC_FIELDS)
    if "environment" in found:
        found["environment"] = current_environment_id(found["environment"])
    if isinstance(found.get("environment_config"), dict):
        found["environment_config"] = _renamed(found["environment_config"], _ENVIRONMENT_SETTINGS)
    config = found.get("config")
    if found.get("algorithm") in _CAPPED_ALGORITHMS and isinstance(config, dict) and _is_capped(config):
        found["config"] = _with_protocol(config, found.get("environment", ATARI_PREFIX))
    return found


def current_protocol(spec: dict[str, Any], protocol: str) -> str:
    """The current name of a protocol in an evaluation of version 0.1.0.

    That version called every evaluation on Atari `noop_starts`, also DQN's and Gorila's, whose episodes are
    shorter.

    Args:
        spec: of its run, as stored.
        protocol: as that version named it.
    """
    if protocol != "noop_starts" or spec.get("algorithm") not in _CAPPED_ALGORITHMS:
        return protocol
    config = spec.get("config", {})
    if config.get("evaluation_protocol") == "noop_starts":  # already with the current names
        return protocol
    cap = config.get(FORMER_CAP, MAX_FRAMES_5MIN)
    return _FORMER_CAPS.get(cap, f"noop_starts_{cap}_frames")


def current_metric(spec: dict[str, Any], metric: str) -> str:
    """The current name of a metric in a log of version 0.1.0."""
    section, _, rest = metric.partition("/")
    protocol, _, name = rest.partition("/")
    if section != "eval" or not name:
        return metric
    return f"{section}/{current_protocol(spec, protocol)}/{name}"


def _is_capped(config: dict[str, Any]) -> bool:
    return type(config.get(FORMER_CAP)) is int


def _with_protocol(config: dict[str, Any], environment: Any) -> dict[str, Any]:
    """Settings without `evaluation_max_frames`; a cap other than a protocol's becomes the paper's."""
    kept = {name: value for name, value in config.items() if name != FORMER_CAP}
    is_atari = isinstance(environment, str) and environment.startswith(ATARI_PREFIX)
    if config[FORMER_CAP] == MAX_FRAMES and is_atari:
        kept.setdefault("evaluation_protocol", "noop_starts")
    return kept


def _renamed(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {
        names[name] if name in names and names[name] not in values else name: value
        for name, value in values.items()
    }
