"""The registry of worlds: how each family in `backend.specs.environments` is built here."""

from backend.specs.environments import EnvironmentConfig
from backend.specs.environments.atari import AtariConfig
from backend.specs.environments.classic import ClassicConfig
from backend.specs.environments.labyrinth import LabyrinthConfig
from backend.specs.environments.mujoco import MujocoPixelsConfig, MujocoStateConfig
from backend.specs.environments.own import OwnConfig
from backend.specs.environments.racing import EnvPoolRacingConfig, RacingConfig
from backend.specs.environments.small import CatchConfig, MemoryConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import ActionSpace, Box, Discrete, Step, World, WorldCrashedError

EVALUATION_MAX_FRAMES = 108_000


def make_world(environment: str, config: EnvironmentConfig) -> World:
    """Build one world. Families are imported when first built, so a worker loads only what it plays.

    Raises:
        OwnWorldsError: it is a host's own, and not this host's.
    """
    match config:
        case AtariConfig():
            from workers.engine.envs.atari import AtariWorld

            return AtariWorld(environment, config)
        case ClassicConfig():
            from workers.engine.envs.classic import ClassicWorld

            return ClassicWorld(environment, config)
        case LabyrinthConfig():
            from workers.engine.envs.labyrinth import LabyrinthWorld

            return LabyrinthWorld(environment, config)
        case RacingConfig():
            from workers.engine.envs.racing import RacingWorld

            return RacingWorld(environment, config)
        case EnvPoolRacingConfig():
            from workers.engine.envs.envpool_racing import EnvPoolRacingWorld

            return EnvPoolRacingWorld(config)
        case OwnConfig():
            from workers.engine.envs.own import OwnGymnasiumWorld

            return OwnGymnasiumWorld(environment, config)
        case MujocoStateConfig():
            from workers.engine.envs.mujoco import MujocoWorld

            return MujocoWorld(environment, config)
        case MujocoPixelsConfig():
            from workers.engine.envs.mujoco import MujocoPixelsWorld

            return MujocoPixelsWorld(environment, config)
        case CatchConfig():
            from workers.engine.envs.small import CatchWorld

            return CatchWorld(config)
        case MemoryConfig():
            from workers.engine.envs.small import MemoryWorld

            return MemoryWorld(config)
    raise TypeError(f"no world is built from {type(config).__name__}")


def evaluation_config(
    config: EnvironmentConfig, *, max_frames: int = EVALUATION_MAX_FRAMES
) -> EnvironmentConfig:
    """The settings under which agents are scored: the papers' exact pipeline and starts.

    Atari: RGB maximum before luminance, 1 to 30 no-ops, at most `max_frames` frames, whole games; no sticky
    actions, no FIRE at reset. What makes it another game or another agent is kept.
    """
    if isinstance(config, AtariConfig):
        return AtariConfig(
            max_frames=max_frames,
            frame_skip=config.frame_skip,
            full_action_set=config.full_action_set,
            mode=config.mode,
            difficulty=config.difficulty,
            picture_size=config.picture_size,
            crop=config.crop,
            frame_maximum="rgb",
        )
    return config


def world_config(spec: RunSpec, *, evaluation: bool) -> EnvironmentConfig:
    """The settings of a run's world, in training or where it is scored, which DQN's papers cut shorter."""
    if not evaluation:
        return spec.environment_config
    longest = getattr(spec.config, "evaluation_max_frames", EVALUATION_MAX_FRAMES)
    return evaluation_config(spec.environment_config, max_frames=longest)


__all__ = [
    "ActionSpace",
    "Box",
    "Discrete",
    "Step",
    "World",
    "WorldCrashedError",
    "evaluation_config",
    "make_world",
    "world_config",
]
