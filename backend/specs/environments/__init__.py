"""The catalogue of worlds: one line a family."""

from backend.specs.environments.atari import ATARI
from backend.specs.environments.base import Environment, EnvironmentConfig, PublishedScore
from backend.specs.environments.classic import CLASSIC
from backend.specs.environments.labyrinth import LABYRINTH
from backend.specs.environments.mujoco import MUJOCO
from backend.specs.environments.racing import RACING
from backend.specs.environments.small import SMALL

ENVIRONMENTS: dict[str, Environment] = {
    world.id: world for world in (*ATARI, *LABYRINTH, *RACING, *MUJOCO, *CLASSIC, *SMALL)
}
"""Every world one may ask for, by id."""

__all__ = ["ENVIRONMENTS", "Environment", "EnvironmentConfig", "PublishedScore"]
