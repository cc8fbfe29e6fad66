"""Car racing from pixels, on a new track in each episode (Mnih et al. 2016, section 5.2)."""

from dataclasses import replace
from math import ceil

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


class RacingConfig(EnvironmentConfig):
    """Settings of every racing environment."""

    frame_skip: int = setting(
        4,
        ge=1,
        le=50,
        title="Action repeat",
        group="environment",
        unit="frames",
        description="Game frames (50 per second) for which each action is repeated.",
    )
    episode_s: float = setting(
        40.0,
        ge=1,
        le=3_600,
        title="Episode length",
        group="environment",
        unit="s",
        description="Seconds of driving after which an episode is truncated; the return then bootstraps "
        "from the value of the last observation, unless an update is a whole episode (t_max 0).",
    )

    @property
    def longest_episode_agent_steps(self) -> int:
        """The agent steps of `episode_s` at 50 frames per second."""
        return ceil(50 * self.episode_s / self.frame_skip)


class EnvPoolRacingConfig(EnvironmentConfig):
    """Settings of EnvPool's CarRacing."""

    frame_skip: int = setting(
        4,
        ge=1,
        le=50,
        title="Action repeat",
        group="environment",
        unit="frames",
        description="Game frames (50 per second) for which each action is repeated.",
    )


POWER: dict[str, float] = {"Slow": 0.05, "Fast": 0.2}
"""Fraction of the power of gymnasium's car."""
N_OPPONENTS = 5
OPPONENT_SPEEDS: dict[str, tuple[float, float]] = {"Slow": (12.0, 22.0), "Fast": (18.0, 28.0)}
"""The lowest and the highest speed of an opponent, in simulation units per second; a driver who follows the
road reaches 35."""

STEERING: dict[str, float] = {"LEFT": 0.6, "STRAIGHT": 0.0, "RIGHT": -0.6}
PEDALS: dict[str, float] = {"GAS": 1.0, "COAST": 0.0, "BRAKE": -0.8}
ACTIONS: dict[str, tuple[float, float]] = {
    f"{way}_{pedal}": (STEERING[way], PEDALS[pedal]) for way in STEERING for pedal in PEDALS
}
"""Discrete action -> steering (positive: left) and pedal (positive: gas, negative: brake)."""


def _environments(name: str) -> tuple[Environment, ...]:
    discrete = Environment(
        id=f"Racing-{name}-v0",
        title=f"Racing, {name.lower()} car",
        family="racing",
        summary="A new track in each episode; reward 1 for every 10 units along the road. 84×84 RGB.",
        observation="pixels",
        config=RacingConfig,
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
    opponents = replace(
        discrete,
        id=f"Racing-{name}-Opponents-v0",
        title=f"{discrete.title}, opponents",
        summary=f"A new track in each episode, with {N_OPPONENTS} slower cars to overtake; reward 1 for "
        "every 10 units along the road. 84×84 RGB.",
    )
    return discrete, continuous, opponents


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
    title="CarRacing (EnvPool)",
    family="envpool",
    summary="gymnasium's CarRacing in C++, with its car and reward: 1,000 for all tiles of the track, minus "
    "0.1 per frame. Requires callboard[envpool].",
    observation="pixels",
    config=EnvPoolRacingConfig,
    frames_per_agent_step=4,
    action_names=tuple(ENVPOOL_ACTIONS),
    observation_shape=(84, 84, 3),
    memory_bytes=16 * 2**20,
)

RACING: tuple[Environment, ...] = (
    *(environment for name in POWER for environment in _environments(name)),
    ENVPOOL_RACING,
)
