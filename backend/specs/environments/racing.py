"""Car racing from pixels, on a new track each episode (Mnih et al. 2016, section 5.2)."""

from dataclasses import replace

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


class RacingConfig(EnvironmentConfig):
    """Settings of every race."""

    frame_skip: int = setting(
        4,
        ge=1,
        le=50,
        title="Action repeat",
        group="environment",
        unit="frames",
        description="Frames of the race, 50 a second, for which one action is held.",
    )
    episode_s: float = setting(
        40.0,
        ge=1,
        le=3_600,
        title="Episode",
        group="environment",
        unit="s",
        description="Seconds of driving after which an episode is cut off; the value of what follows "
        "is still counted.",
    )


class EnvPoolRacingConfig(EnvironmentConfig):
    """Settings of EnvPool's race."""

    frame_skip: int = setting(
        4,
        ge=1,
        le=50,
        title="Action repeat",
        group="environment",
        unit="frames",
        description="Frames of the race, 50 a second, for which one action is held.",
    )


POWER: dict[str, float] = {"Slow": 0.05, "Fast": 0.2}
"""Share of the power of gymnasium's car."""

STEERING: dict[str, float] = {"LEFT": 0.6, "STRAIGHT": 0.0, "RIGHT": -0.6}
PEDALS: dict[str, float] = {"GAS": 1.0, "COAST": 0.0, "BRAKE": -0.8}
ACTIONS: dict[str, tuple[float, float]] = {
    f"{way}_{pedal}": (STEERING[way], PEDALS[pedal]) for way in STEERING for pedal in PEDALS
}
"""Discrete action -> steering to the left and pedal, gas above 0, brake below."""


def _worlds(name: str) -> tuple[Environment, Environment]:
    discrete = Environment(
        id=f"Racing-{name}-v0",
        title=f"Racing, {name.lower()} car",
        family="racing",
        summary="A new track each episode; 1 for every 10 units along the middle of the road. 84×84 RGB.",
        observation="pixels",
        config=RacingConfig,
        evaluation_protocol="plain",
        frames_per_agent_step=4,
        action_names=tuple(ACTIONS),
        observation_shape=(84, 84, 3),
        memory_bytes=16 * 2**20,
    )
    continuous = replace(
        discrete,
        id=f"Racing-{name}-Continuous-v0",
        title=f"{discrete.title}, continuous",
        action_names=("STEER LEFT", "PEDAL"),
        actions="continuous",
    )
    return discrete, continuous


ENVPOOL_ACTIONS: dict[str, tuple[float, float, float]] = {
    "NOTHING": (0.0, 0.0, 0.0),
    "RIGHT": (0.6, 0.0, 0.0),
    "LEFT": (-0.6, 0.0, 0.0),
    "GAS": (0.0, 0.2, 0.0),
    "BRAKE": (0.0, 0.0, 0.8),
}
"""gymnasium's discrete actions -> steering to the right, gas and brake."""

ENVPOOL_RACING = Environment(
    id="CarRacing-v3",
    title="CarRacing, EnvPool's",
    family="envpool",
    summary="gymnasium's race in C++, with its own car and reward: 1,000 for all tiles of the track, less "
    "0.1 a frame. Where callboard[envpool] is installed.",
    observation="pixels",
    config=EnvPoolRacingConfig,
    evaluation_protocol="plain",
    frames_per_agent_step=4,
    action_names=tuple(ENVPOOL_ACTIONS),
    observation_shape=(84, 84, 3),
    memory_bytes=16 * 2**20,
)

RACING: tuple[Environment, ...] = (
    *(world for name in POWER for world in _worlds(name)),
    ENVPOOL_RACING,
)
