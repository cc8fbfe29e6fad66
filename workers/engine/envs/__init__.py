"""The registry of environments: builds each family of `backend.specs.environments`."""

from pathlib import Path

from backend.specs.environments import EnvironmentConfig
from backend.specs.environments.atari import AtariConfig
from backend.specs.environments.classic import ClassicConfig
from backend.specs.environments.custom import CustomConfig
from backend.specs.environments.labyrinth import LabyrinthConfig
from backend.specs.environments.mujoco import MujocoPixelsConfig, MujocoStateConfig
from backend.specs.environments.racing import EnvPoolRacingConfig, RacingConfig
from backend.specs.environments.small import CatchConfig, MemoryConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import ActionSpace, Box, Discrete, Env, EnvCrashedError, Step


def make_env(environment: str, config: EnvironmentConfig, starts: Path | None = None) -> Env:
    """Build one environment. Its family is imported on first use, so a worker loads only what it plays.

    Args:
        environment: id of the environment.
        config: the environment's settings.
        starts: file of the states from which its episodes start (Atari games only); None: its own starts.

    Raises:
        CustomEnvironmentsError: it is a custom environment that this host does not have.
        StartsError: the starts cannot be used on this host.
    """
    match config:
        case AtariConfig():
            from workers.engine.envs.atari import AtariEnv
            from workers.engine.envs.starts import load

            atari = AtariEnv(environment, config)
            if starts is not None:
                atari.starts = load(starts)
            return atari
        case ClassicConfig():
            from workers.engine.envs.gymnasium_env import ClassicEnv

            return ClassicEnv(environment, config)
        case LabyrinthConfig():
            from workers.engine.envs.labyrinth import LabyrinthEnv

            return LabyrinthEnv(environment, config)
        case RacingConfig():
            from workers.engine.envs.racing import RacingEnv

            return RacingEnv(environment, config)
        case EnvPoolRacingConfig():
            from workers.engine.envs.envpool_racing import EnvPoolRacingEnv

            return EnvPoolRacingEnv(config)
        case CustomConfig():
            from workers.engine.envs.custom import CustomEnv

            return CustomEnv(environment, config)
        case MujocoStateConfig():
            from workers.engine.envs.mujoco import MujocoEnv

            return MujocoEnv(environment, config)
        case MujocoPixelsConfig():
            from workers.engine.envs.mujoco import MujocoPixelsEnv

            return MujocoPixelsEnv(environment, config)
        case CatchConfig():
            from workers.engine.envs.small import CatchEnv

            return CatchEnv(config)
        case MemoryConfig():
            from workers.engine.envs.small import MemoryEnv

            return MemoryEnv(config)
    raise TypeError(f"no environment family is registered for {type(config).__name__}")


def env_config(spec: RunSpec, protocol: str | None) -> EnvironmentConfig:
    """The environment config of an evaluation under this protocol; None: of training."""
    return spec.environment_config if protocol is None else spec.evaluation_config(protocol)


__all__ = [
    "ActionSpace",
    "Box",
    "Discrete",
    "Env",
    "EnvCrashedError",
    "Step",
    "env_config",
    "make_env",
]
