"""How the training of a run departs from its specification, setting by setting, as text.

`Run.departures` is a part of the key and of the name of the run's group: a run whose learning rate was
changed live is no seed of the configuration that its specification now shows, and neither are runs of two
major versions of a simulator seeds of each other.
"""

from collections.abc import Mapping
from typing import Any

_SIMULATORS = {"mujoco": ("mujoco", "MuJoCo", "4")}
"""Of families of environments: package and name of the simulator, and the major version that goes without
saying. MuJoCo 4 is another Hopper and another Ant than MuJoCo 3 within ten steps."""


def with_change(
    departures: Mapping[str, Any], name: str, before: Any, after: Any, agent_steps: int
) -> dict[str, Any]:
    """The departures of a run of which a setting has changed at these agent steps.

    A change before the first step is none: the run has trained with its specification.
    """
    if agent_steps == 0 or before == after:
        return dict(departures)
    earlier = departures.get(name, _plain(before))
    return {**departures, name: f"{earlier} → {_plain(after)} at {_count(agent_steps)}"}


def with_simulator(
    departures: Mapping[str, Any], family: str | None, packages: Mapping[str, str], agent_steps: int
) -> dict[str, Any]:
    """The departures of a run of a family of environments that trains on from these agent steps with these
    versions of packages."""
    if family not in _SIMULATORS:
        return dict(departures)
    package, title, usual = _SIMULATORS[family]
    if package not in packages:
        return dict(departures)
    major = packages[package].partition(".")[0]
    before = departures.get(title, usual)
    if before.split(" → ")[-1].split(" ")[0] == major:
        return dict(departures)
    return {
        **departures,
        title: major if agent_steps == 0 else f"{before} → {major} at {_count(agent_steps)}",
    }


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _count(agent_steps: int) -> str:
    """A number of steps in three digits: `234k`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if agent_steps >= size:
            return f"{agent_steps / size:.3g}{unit}"
    return str(agent_steps)
