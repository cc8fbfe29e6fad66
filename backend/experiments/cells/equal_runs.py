"""Which runs train alike, so that a run that exists can fill a cell of a study.

Two runs train alike if algorithm, settings, environment, seed, limits, device and annealing are equal. What
they are called, where they ran and what they belong to does not count. That their engines had one version is
checked where runs are read: see `backend.experiments.studies.repository`.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from backend.specs.run import RunSpec

_COUNTED = (
    "algorithm",
    "environment",
    "config",
    "environment_config",
    "custom",
    "seed",
    "stop",
    "annealing_agent_steps",
    "device",
)


def key_of(spec: RunSpec) -> str:
    """Equal for runs that train alike."""
    return key_of_stored(spec.model_dump(mode="json"))


def key_of_stored(spec: Mapping[str, Any]) -> str:
    """The key of a run by its specification as stored."""
    counted = {name: spec.get(name) for name in _COUNTED}
    if spec.get("command"):  # its script may add to the rest
        counted = {"command": spec["command"]}
    if spec.get("package"):
        counted["package"] = spec["package"]
    text = json.dumps(_plain(counted), sort_keys=True)
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    """The value with 1.0 as 1: PostgreSQL's jsonb keeps no difference."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
