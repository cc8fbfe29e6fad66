"""MuJoCo: gymnasium's v5 environments, from state and from pixels (Mnih et al. 2016, 5.3)."""

from typing import NamedTuple

from backend.specs.environments.base import USUAL_EPISODE_AGENT_STEPS, Environment, EnvironmentConfig
from backend.specs.fields import setting

STATE_BYTES = 12 * 2**20
"""MuJoCo's code, which each process imports, and one simulation."""
PIXELS_BYTES = 45 * 2**20
"""The same with a renderer: 60 MiB for the first environment of a process, 27 for each further one."""


class MujocoConfig(EnvironmentConfig):
    """Settings of every MuJoCo environment."""

    max_episode_agent_steps: int | None = setting(
        None,
        ge=1,
        le=100_000,
        title="Max episode length",
        group="environment",
        unit="agent steps",
        description="An episode is truncated after this many agent steps; the return then bootstraps from "
        "the value of the last observation, unless an update is a whole episode (t_max 0). Leave empty "
        "for gymnasium's limit, 1,000 for most environments.",
    )

    @property
    def longest_episode_agent_steps(self) -> int:
        """The limit, or gymnasium's."""
        return self.max_episode_agent_steps or USUAL_EPISODE_AGENT_STEPS


class MujocoStateConfig(MujocoConfig):
    """Settings of an environment with state observations."""

    normalise: bool = setting(
        True,
        title="Normalise observations",
        group="environment",
        description="Normalises each dimension to mean 0 and standard deviation 1 in random play, by "
        "constants measured once, and clips it to ±10.",
    )


class MujocoPixelsConfig(MujocoConfig):
    """Settings of an environment with camera observations."""


class _Mujoco(NamedTuple):
    """An environment: title, goal, dimensions of its state, and names of its motors."""

    title: str
    summary: str
    numbers: int
    motors: str


_HUMANOID = (
    "ABDOMEN_Y ABDOMEN_Z ABDOMEN_X RIGHT_HIP_X RIGHT_HIP_Z RIGHT_HIP_Y RIGHT_KNEE LEFT_HIP_X LEFT_HIP_Z "
    "LEFT_HIP_Y LEFT_KNEE "
    "RIGHT_SHOULDER1 RIGHT_SHOULDER2 RIGHT_ELBOW LEFT_SHOULDER1 LEFT_SHOULDER2 LEFT_ELBOW"
)

MUJOCO_ENVIRONMENTS: dict[str, _Mujoco] = {
    "Ant": _Mujoco(
        "Ant", "Walk on four legs.", 105, "HIP_4 ANKLE_4 HIP_1 ANKLE_1 HIP_2 ANKLE_2 HIP_3 ANKLE_3"
    ),
    "HalfCheetah": _Mujoco("Half Cheetah", "Run on two legs.", 17, "BTHIGH BSHIN BFOOT FTHIGH FSHIN FFOOT"),
    "Hopper": _Mujoco("Hopper", "Hop on one leg.", 11, "THIGH LEG FOOT"),
    "Humanoid": _Mujoco("Humanoid", "Walk upright.", 348, _HUMANOID),
    "HumanoidStandup": _Mujoco("Humanoid Standup", "Stand up from lying.", 348, _HUMANOID),
    "InvertedDoublePendulum": _Mujoco("Inverted Double Pendulum", "Balance two poles on a cart.", 9, "SLIDE"),
    "InvertedPendulum": _Mujoco("Inverted Pendulum", "Balance a pole on a cart.", 4, "SLIDE"),
    "Pusher": _Mujoco(
        "Pusher",
        "Push an object to its place with an arm.",
        23,
        "SHOULDER_PAN SHOULDER_LIFT UPPER_ARM_ROLL ELBOW_FLEX FOREARM_ROLL WRIST_FLEX WRIST_ROLL",
    ),
    "Reacher": _Mujoco("Reacher", "Touch a target with a two-link arm.", 10, "JOINT0 JOINT1"),
    "Swimmer": _Mujoco("Swimmer", "Swim with two joints.", 8, "MOTOR1 MOTOR2"),
    "Walker2d": _Mujoco("Walker 2D", "Walk on two legs.", 17, "THIGH LEG FOOT THIGH_LEFT LEG_LEFT FOOT_LEFT"),
}
"""gymnasium's name without its version -> description."""


def _environments(name: str, described: _Mujoco) -> tuple[Environment, Environment]:
    motors = tuple(described.motors.split())
    return (
        Environment(
            id=f"{name}-v5",
            title=described.title,
            family="mujoco",
            summary=f"{described.summary} MuJoCo, state observations.",
            observation="vector",
            config=MujocoStateConfig,
            frames_per_agent_step=1,
            action_names=motors,
            observation_shape=(described.numbers,),
            actions="continuous",
            memory_bytes=STATE_BYTES,
        ),
        Environment(
            id=f"{name}-Pixels-v5",
            title=f"{described.title}, from pixels",
            family="mujoco",
            summary=f"{described.summary} MuJoCo, camera observations: four stacked 84×84 luminance frames.",
            observation="pixels",
            config=MujocoPixelsConfig,
            frames_per_agent_step=1,
            action_names=motors,
            observation_shape=(84, 84, 4),
            actions="continuous",
            config_defaults={"reward_clip": 0.0},
            memory_bytes=PIXELS_BYTES,
        ),
    )


MUJOCO: tuple[Environment, ...] = tuple(
    environment
    for name, described in MUJOCO_ENVIRONMENTS.items()
    for environment in _environments(name, described)
)
