"""Our own small worlds: minutes on a laptop, and tests of what an agent can learn at all."""

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


class CatchConfig(EnvironmentConfig):
    """Catch has nothing to set."""


class MemoryConfig(EnvironmentConfig):
    """Settings of the memory task."""

    delay_agent_steps: int = setting(
        8,
        ge=1,
        le=1_000,
        title="Delay",
        group="environment",
        unit="agent steps",
        description="How long after the cue the question comes.",
    )


SMALL: tuple[Environment, ...] = (
    Environment(
        id="Catch-v0",
        title="Catch",
        family="small",
        summary="A ball falls; be under it. 1 caught, -1 missed, from 84×84 pixels.",
        observation="pixels",
        config=CatchConfig,
        evaluation_protocol="plain",
        replayable=True,
        frames_per_agent_step=1,
        action_names=("LEFT", "STAY", "RIGHT"),
        observation_shape=(84, 84, 1),
    ),
    Environment(
        id="Memory-v0",
        title="Memory",
        family="small",
        summary="A cue is seen once, long before it is asked for: 1 or -1; without memory, 0 on average.",
        observation="vector",
        config=MemoryConfig,
        evaluation_protocol="plain",
        replayable=True,
        frames_per_agent_step=1,
        action_names=("LEFT", "RIGHT"),
        observation_shape=(3,),
    ),
)
