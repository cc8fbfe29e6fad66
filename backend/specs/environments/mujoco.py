"""Continuous control on MuJoCo: gymnasium's v5 tasks, from state and from pixels (Mnih et al. 2016, 5.3)."""

from typing import NamedTuple

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


class MujocoConfig(EnvironmentConfig):
    """Settings of every MuJoCo task."""

    max_episode_agent_steps: int | None = setting(
        None,
        ge=1,
        le=100_000,
        title="Longest episode",
        group="environment",
        unit="agent steps",
        description="An episode is cut off here; nothing takes gymnasium's own bound, 1,000 for most tasks. "
        "The value of what follows is still counted.",
    )


class MujocoStateConfig(MujocoConfig):
    """Settings of a task seen as its state."""

    normalise: bool = setting(
        True,
        title="Normalise observations",
        group="environment",
        description="Each number has mean 0 and deviation 1 in random play, by constants measured once, and "
        "is held within ±10.",
    )


class MujocoPixelsConfig(MujocoConfig):
    """Settings of a task seen through a camera."""


class Task(NamedTuple):
    """One task: its name in words, what is to be done, how many numbers its state has, and its motors."""

    title: str
    summary: str
    numbers: int
    motors: str


_HUMANOID = (
    "ABDOMEN_Y ABDOMEN_Z ABDOMEN_X RIGHT_HIP_X RIGHT_HIP_Z RIGHT_HIP_Y RIGHT_KNEE LEFT_HIP_X LEFT_HIP_Z "
    "LEFT_HIP_Y LEFT_KNEE "
    "RIGHT_SHOULDER1 RIGHT_SHOULDER2 RIGHT_ELBOW LEFT_SHOULDER1 LEFT_SHOULDER2 LEFT_ELBOW"
)

TASKS: dict[str, Task] = {
    "Ant": Task("Ant", "Walk on four legs.", 105, "HIP_4 ANKLE_4 HIP_1 ANKLE_1 HIP_2 ANKLE_2 HIP_3 ANKLE_3"),
    "HalfCheetah": Task("Half Cheetah", "Run on two legs.", 17, "BTHIGH BSHIN BFOOT FTHIGH FSHIN FFOOT"),
    "Hopper": Task("Hopper", "Hop on one leg.", 11, "THIGH LEG FOOT"),
    "Humanoid": Task("Humanoid", "Walk upright.", 348, _HUMANOID),
    "HumanoidStandup": Task("Humanoid Standup", "Stand up from lying.", 348, _HUMANOID),
    "InvertedDoublePendulum": Task("Inverted Double Pendulum", "Balance two poles on a cart.", 9, "SLIDE"),
    "InvertedPendulum": Task("Inverted Pendulum", "Balance a pole on a cart.", 4, "SLIDE"),
    "Pusher": Task(
        "Pusher",
        "Push an object to its place with an arm.",
        23,
        "SHOULDER_PAN SHOULDER_LIFT UPPER_ARM_ROLL ELBOW_FLEX FOREARM_ROLL WRIST_FLEX WRIST_ROLL",
    ),
    "Reacher": Task("Reacher", "Touch a target with a two-link arm.", 10, "JOINT0 JOINT1"),
    "Swimmer": Task("Swimmer", "Swim with two joints.", 8, "MOTOR1 MOTOR2"),
    "Walker2d": Task("Walker 2D", "Walk on two legs.", 17, "THIGH LEG FOOT THIGH_LEFT LEG_LEFT FOOT_LEFT"),
}
"""gymnasium's name without its version -> task."""


def _worlds(name: str, task: Task) -> tuple[Environment, Environment]:
    motors = tuple(task.motors.split())
    return (
        Environment(
            id=f"{name}-v5",
            title=task.title,
            family="mujoco",
            summary=f"{task.summary} MuJoCo, from its state.",
            observation="vector",
            config=MujocoStateConfig,
            evaluation_protocol="plain",
            frames_per_agent_step=1,
            action_names=motors,
            observation_shape=(task.numbers,),
            actions="continuous",
        ),
        Environment(
            id=f"{name}-Pixels-v5",
            title=f"{task.title}, from pixels",
            family="mujoco",
            summary=f"{task.summary} MuJoCo, through a camera: 84×84 luminance, four pictures stacked.",
            observation="pixels",
            config=MujocoPixelsConfig,
            evaluation_protocol="plain",
            frames_per_agent_step=1,
            action_names=motors,
            observation_shape=(84, 84, 4),
            actions="continuous",
            config_defaults={"reward_clip": 0.0},
        ),
    )


MUJOCO: tuple[Environment, ...] = tuple(
    world for name, task in TASKS.items() for world in _worlds(name, task)
)
