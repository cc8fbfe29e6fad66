"""Small worlds with vector observations, for first steps and for tests."""

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


class ClassicConfig(EnvironmentConfig):
    """Settings of gymnasium's classic control tasks."""

    max_episode_agent_steps: int = setting(
        500,
        ge=1,
        le=100_000,
        title="Longest episode",
        group="environment",
        unit="agent steps",
        description="An episode is cut off here; the value of what follows is still counted.",
    )


CLASSIC: tuple[Environment, ...] = (
    Environment(
        id="CartPole-v1",
        title="CartPole",
        family="classic",
        summary="Balance a pole on a cart; 1 point a step, at most 500.",
        observation="vector",
        config=ClassicConfig,
        evaluation_protocol="plain",
        frames_per_agent_step=1,
    ),
)
