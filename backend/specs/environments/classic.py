"""Small environments with vector observations, for first experiments and tests."""

from typing import Any

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


def _max_episode(agent_steps: int) -> Any:
    return setting(
        agent_steps,
        ge=1,
        le=100_000,
        title="Max episode length",
        group="environment",
        unit="agent steps",
        description="An episode is truncated after this many agent steps; the return then bootstraps from "
        "the value of the last observation.",
    )


class ClassicConfig(EnvironmentConfig):
    """Settings of gymnasium's classic control environments."""

    max_episode_agent_steps: int = _max_episode(500)

    @property
    def longest_episode_agent_steps(self) -> int:
        """The limit."""
        return self.max_episode_agent_steps


class PendulumConfig(ClassicConfig):
    """Settings of Pendulum, with gymnasium's time limit."""

    max_episode_agent_steps: int = _max_episode(200)


CLASSIC: tuple[Environment, ...] = (
    Environment(
        id="CartPole-v1",
        title="CartPole",
        family="classic",
        summary="Balance a pole on a cart; reward 1 per step, at most 500.",
        observation="vector",
        config=ClassicConfig,
        replayable=True,
        frames_per_agent_step=1,
        action_names=("LEFT", "RIGHT"),
        observation_shape=(4,),
    ),
    Environment(
        id="Acrobot-v1",
        title="Acrobot",
        family="classic",
        summary="Swing a two-link arm up by its elbow; reward -1 per step until it is above the line.",
        observation="vector",
        config=ClassicConfig,
        replayable=True,
        frames_per_agent_step=1,
        action_names=("TORQUE -1", "NO TORQUE", "TORQUE +1"),
        observation_shape=(6,),
    ),
    Environment(
        id="Pendulum-v1",
        title="Pendulum",
        family="classic",
        summary="Swing a pendulum up and hold it with little torque; reward -16.3 to 0 per step.",
        observation="vector",
        config=PendulumConfig,
        replayable=True,
        frames_per_agent_step=1,
        action_names=("TORQUE",),
        observation_shape=(3,),
        actions="continuous",
    ),
)
