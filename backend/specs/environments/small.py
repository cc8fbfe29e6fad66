"""Small environments of this project: minutes on a laptop, and tests of what an agent can learn."""

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


class CatchConfig(EnvironmentConfig):
    """Catch has no settings."""


class MemoryConfig(EnvironmentConfig):
    """Settings of Memory."""

    delay_agent_steps: int = setting(
        8,
        ge=1,
        le=1_000,
        title="Delay",
        group="environment",
        unit="agent steps",
        description="Agent steps between the cue and the question.",
    )


SMALL: tuple[Environment, ...] = (
    Environment(
        id="Catch-v0",
        title="Catch",
        family="small",
        summary="Catch a falling ball: reward 1 for a catch, -1 for a miss; 84×84 pixels.",
        observation="pixels",
        config=CatchConfig,
        replayable=True,
        frames_per_agent_step=1,
        action_names=("LEFT", "STAY", "RIGHT"),
        observation_shape=(84, 84, 1),
    ),
    Environment(
        id="Memory-v0",
        title="Memory",
        family="small",
        summary="A cue is shown once, long before it is needed: reward 1 or -1, 0 on average without memory.",
        observation="vector",
        config=MemoryConfig,
        replayable=True,
        frames_per_agent_step=1,
        action_names=("LEFT", "RIGHT"),
        observation_shape=(3,),
    ),
)
