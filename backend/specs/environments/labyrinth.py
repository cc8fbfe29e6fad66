"""Labyrinth: find apples and the portal in a maze that is new in each episode (Mnih et al. 2016, 5.4)."""

from math import ceil
from typing import NamedTuple

from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import setting


class LabyrinthConfig(EnvironmentConfig):
    """Settings of every labyrinth."""

    frame_skip: int = setting(
        4,
        ge=1,
        le=35,
        title="Action repeat",
        group="environment",
        unit="frames",
        description="Game frames (35 per second) for which each action is repeated.",
    )
    episode_s: float = setting(
        60.0,
        ge=1,
        le=3_600,
        title="Episode length",
        group="environment",
        unit="s",
        description="Seconds of game time after which an episode ends.",
    )

    @property
    def longest_episode_agent_steps(self) -> int:
        """The agent steps of `episode_s` at 35 frames per second."""
        return ceil(35 * self.episode_s / self.frame_skip)


class MazeSize(NamedTuple):
    """Dimensions of a labyrinth."""

    cells: int
    """Cells along each side, walls included; odd."""
    rooms: int
    apples: int


SIZES: dict[str, MazeSize] = {
    "Small": MazeSize(cells=9, rooms=1, apples=4),
    "Medium": MazeSize(cells=15, rooms=4, apples=8),
    "Large": MazeSize(cells=21, rooms=8, apples=12),
}

ACTIONS = (
    "FORWARD",
    "BACKWARD",
    "STRAFE_LEFT",
    "STRAFE_RIGHT",
    "LOOK_LEFT",
    "LOOK_RIGHT",
    "FORWARD_LOOK_LEFT",
    "FORWARD_LOOK_RIGHT",
)

LABYRINTH: tuple[Environment, ...] = tuple(
    Environment(
        id=f"Labyrinth-{name}-v0",
        title=f"Labyrinth, {name.lower()}",
        family="labyrinth",
        summary=f"A new maze of {size.cells}×{size.cells} cells in each episode. An apple gives 1; the "
        "portal gives 10 and respawns the agent. 60 s; 84×84 RGB.",
        observation="pixels",
        config=LabyrinthConfig,
        frames_per_agent_step=4,
        action_names=ACTIONS,
        observation_shape=(84, 84, 3),
        config_defaults={"reward_clip": 0.0},  # clipped, an apple would count as much as the portal
        memory_bytes=40 * 2**20,
    )
    for name, size in SIZES.items()
)
