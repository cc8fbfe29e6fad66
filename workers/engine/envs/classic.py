"""gymnasium's classic control tasks."""

import gymnasium

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.classic import ClassicConfig
from workers.engine.envs.gymnasium_world import GymnasiumWorld


class ClassicWorld(GymnasiumWorld):
    """One task; a decision is a frame."""

    def __init__(self, environment: str, config: ClassicConfig) -> None:
        env = gymnasium.make(
            environment,
            render_mode="rgb_array",
            max_episode_steps=config.max_episode_agent_steps,
            disable_env_checker=True,
        )
        super().__init__(env, ENVIRONMENTS[environment].action_names)
