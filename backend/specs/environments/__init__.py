"""The catalogue of environments, one line per family."""

from backend.specs.environments.atari import ATARI
from backend.specs.environments.base import Environment, EnvironmentConfig, PublishedScore
from backend.specs.environments.classic import CLASSIC
from backend.specs.environments.labyrinth import LABYRINTH
from backend.specs.environments.mujoco import MUJOCO
from backend.specs.environments.racing import RACING
from backend.specs.environments.small import SMALL

ENVIRONMENTS: dict[str, Environment] = {
    environment.id: environment for environment in (*ATARI, *LABYRINTH, *RACING, *MUJOCO, *CLASSIC, *SMALL)
}
"""Every environment of the catalogue, by id."""

__all__ = ["ENVIRONMENTS", "Environment", "EnvironmentConfig", "PublishedScore"]
