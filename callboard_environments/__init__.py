"""Callboard's own environments for other libraries: importing this package registers them with gymnasium.

    import gymnasium
    import callboard_environments

    env = gymnasium.make("callboard/Catch-v0")

`gymnasium.make("callboard_environments:callboard/Catch-v0")` imports the package by itself. Every id of the
families Labyrinth, Racing and small is registered under `callboard/`. Settings of the environment are
arguments of `gymnasium.make`, as in `episode_s=20`. Needs `callboard[worker]`.
"""

from gymnasium.envs.registration import register, registry

from backend.specs.environments import ENVIRONMENTS

NAMESPACE = "callboard"
_FAMILIES = ("labyrinth", "racing", "small")

IDS: tuple[str, ...] = tuple(
    f"{NAMESPACE}/{environment.id}"
    for environment in ENVIRONMENTS.values()
    if environment.family in _FAMILIES
)
"""Every registered id."""


def register_environments() -> None:
    """Register every environment of `IDS` that is not registered yet."""
    for name in IDS:
        if name not in registry:
            register(
                name,
                entry_point="callboard_environments.env:CallboardEnv",
                kwargs={"environment": name.removeprefix(f"{NAMESPACE}/")},
            )


register_environments()

__all__ = ["IDS", "register_environments"]
