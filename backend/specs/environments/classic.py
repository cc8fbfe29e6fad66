"""Small worlds with vector observations, for first steps and for tests."""

from typing import Any

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


def _longest(agent_steps: int) -> Any:
    return setting(
        agent_steps,
        ge=1,
        le=100_000,
        title="Longest episode",
        group="environment",
        unit="agent steps",
        description="An episode is cut off here; the value of what follows is still counted.",
    )


class ClassicConfig(EnvironmentConfig):
    """Settings of gymnasium's classic control tasks."""

    max_episode_agent_steps: int = _longest(500)


class PendulumConfig(ClassicConfig):
    """As gymnasium registers it."""

    max_episode_agent_steps: int = _longest(200)


CLASSIC: tuple[Environment, ...] = (
    Environment(
        id="CartPole-v1",
        title="CartPole",
        family="classic",
        summary="Balance a pole on a cart; 1 point a step, at most 500.",
        observation="vector",
        config=ClassicConfig,
        evaluation_protocol="plain",
        replayable=True,
        frames_per_agent_step=1,
        action_names=("LEFT", "RIGHT"),
        observation_shape=(4,),
    ),
    Environment(
        id="Acrobot-v1",
        title="Acrobot",
        family="classic",
        summary="Swing a two-link arm up by its elbow; -1 a step until it is above the line.",
        observation="vector",
        config=ClassicConfig,
        evaluation_protocol="plain",
        replayable=True,
        frames_per_agent_step=1,
        action_names=("TORQUE -1", "NO TORQUE", "TORQUE +1"),
        observation_shape=(6,),
    ),
    Environment(
        id="Pendulum-v1",
        title="Pendulum",
        family="classic",
        summary="Swing a pendulum up and hold it with little torque; a step costs from 0 to 16.3.",
        observation="vector",
        config=PendulumConfig,
        evaluation_protocol="plain",
        replayable=True,
        frames_per_agent_step=1,
        action_names=("TORQUE",),
        observation_shape=(3,),
        actions="continuous",
    ),
)
