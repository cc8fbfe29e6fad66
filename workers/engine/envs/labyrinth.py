"""Labyrinth on ViZDoom: apples and a portal in a random maze (Mnih et al. 2016, section 5.4).

An episode's seed determines its maze, the cells of apples and portal, and the player's start. An apple gives
a reward of 1. The portal gives 10, moves the player to a random cell and restores every apple. An episode
ends after 60 seconds of the game, at 35 frames a second. The observation is 84×84 RGB; rendered frames show a
map next to it.

Differences from the paper, whose Labyrinth was never released: the maze generator, the sizes and the textures
are ours; apples look like Doom's health bonus, the portal like its soul sphere.
"""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from vizdoom import Button, GameVariable

from backend.specs.environments.labyrinth import ACTIONS, SIZES, LabyrinthConfig
from workers.engine.envs.base import Action, ActionSpace, Crashes, Discrete, EnvCrashedError, OnFrame, Step
from workers.engine.envs.doom import Doom
from workers.engine.envs.images import SIZE
from workers.engine.envs.maze import random_maze, view_with_map
from workers.engine.envs.udmf import Thing, middle, things_text, wad, walls_text

cv2.setNumThreads(1)  # one thread per process: the processes are the parallelism

GAME_FRAMES_PER_SECOND = 35
PLAYER, APPLE, PORTAL = 1, 2014, 2013
APPLE_REWARD, PORTAL_REWARD = 1.0, 10.0
SPEED = 25.0
TURN_DEGREES_PER_FRAME = 5.625
"""A quarter turn in sixteen frames."""

_BUTTONS = [
    Button.MOVE_FORWARD_BACKWARD_DELTA,
    Button.MOVE_LEFT_RIGHT_DELTA,
    Button.TURN_LEFT_RIGHT_DELTA,
]
_VARIABLES = [
    GameVariable.POSITION_X,
    GameVariable.POSITION_Y,
    GameVariable.ANGLE,
    GameVariable.ITEMCOUNT,
    GameVariable.HEALTH,
]
_MOVES: dict[str, list[float]] = {
    "FORWARD": [SPEED, 0, 0],
    "BACKWARD": [-SPEED, 0, 0],
    "STRAFE_LEFT": [0, -SPEED, 0],
    "STRAFE_RIGHT": [0, SPEED, 0],
    "LOOK_LEFT": [0, 0, -TURN_DEGREES_PER_FRAME],
    "LOOK_RIGHT": [0, 0, TURN_DEGREES_PER_FRAME],
    "FORWARD_LOOK_LEFT": [SPEED, 0, -TURN_DEGREES_PER_FRAME],
    "FORWARD_LOOK_RIGHT": [SPEED, 0, TURN_DEGREES_PER_FRAME],
}
_SOUL_SPHERE_HEALTH = 50
"""A soul sphere gives far more health than this, all apples far less."""


class LabyrinthEnv:
    """One labyrinth."""

    observation_shape: tuple[int, ...] = (SIZE, SIZE, 3)
    observation_dtype = np.dtype(np.uint8)
    action_names: tuple[str, ...] = ACTIONS
    action_space: ActionSpace = Discrete(len(ACTIONS))
    frames_per_second = float(GAME_FRAMES_PER_SECOND)

    def __init__(self, environment: str, config: LabyrinthConfig) -> None:
        self._size = SIZES[environment.split("-")[1]]
        self._config = config
        self._doom: Doom | None = None
        self._crashes = Crashes()
        self.on_frame: OnFrame | None = None

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Build the seed's maze and start in it.

        Raises:
            EnvCrashedError: the game does not start.
        """
        self._rng = np.random.default_rng(seed)
        self.floor = random_maze(self._rng, self._size.cells, self._size.rooms)
        self._walls = walls_text(self.floor, self._rng)
        cells = [(y, x) for y, x in np.argwhere(self.floor).tolist()]
        chosen = self._rng.choice(len(cells), 1 + self._size.apples, replace=False).tolist()
        self.portal, *self._all_apples = (cells[k] for k in chosen)
        self._starts = [cell for k, cell in enumerate(cells) if k not in chosen]
        self._frames = 0
        self._start_level()
        self._observe(out)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Repeat the action for `frame_skip` frames.

        Raises:
            EnvCrashedError: the game keeps dying.
        """
        move = _MOVES[ACTIONS[int(action)]]
        frames = self._config.frame_skip
        try:
            if self.on_frame is None:
                self.game.act(move, frames)
            else:
                for _ in range(frames):
                    self.game.act(move, 1)
                    self.on_frame(self.frame())
            reward = self._collect_reward()
            self._observe(out)
        except EnvCrashedError as error:
            self.close()
            return self._crashes.lost_episode(error)
        self._frames += frames
        over = self._frames >= self._config.episode_s * GAME_FRAMES_PER_SECOND
        if over:
            self._crashes.finished_episode()
        return Step(reward=reward, terminated=over, episode_over=over, truncated=False, frames=frames)

    def lives(self) -> int:
        """Always 0: there are no lives."""
        return 0

    def close(self) -> None:
        """End the game."""
        if self._doom is not None:
            self._doom.close()
            self._doom = None

    def _start_level(self) -> None:
        """Start at a random cell of this episode's maze, with all its apples."""
        start = self._starts[int(self._rng.integers(len(self._starts)))]
        angle = 90 * int(self._rng.integers(4))
        self.apples = list(self._all_apples)
        things = [Thing(PLAYER, start, angle), Thing(PORTAL, self.portal)]
        level = wad(self._walls, things_text([*things, *(Thing(APPLE, cell) for cell in self.apples)]))
        if self._doom is not None:
            try:
                self._doom.load(level)
            except EnvCrashedError:  # the new map is loaded by a new game: no episode is lost
                self.close()
        if self._doom is None:
            self._doom = Doom(level, _BUTTONS, _VARIABLES)
        _, (*_, self._items, self._health) = self._doom.observe()

    def _collect_reward(self) -> float:
        """The reward for items picked up since the last call; behind the portal the level restarts."""
        _, (x, y, _, items, health) = self.game.observe()
        through = health - self._health > _SOUL_SPHERE_HEALTH
        apples = int(items - self._items) - through
        self._items, self._health = items, health
        for _ in range(apples):
            self.apples.remove(min(self.apples, key=lambda cell: _distance(cell, x, y)))
        if through:
            self._start_level()
        return float(APPLE_REWARD * apples + PORTAL_REWARD * through)

    @property
    def game(self) -> Doom:
        """The running game."""
        assert self._doom is not None, "reset comes first"
        return self._doom

    @property
    def pose(self) -> tuple[float, float, float]:
        """The player's position in map units (x, y), and heading in degrees counter-clockwise from east."""
        _, (x, y, angle, _, _) = self.game.observe()
        return float(x), float(y), float(angle)

    def _observe(self, out: NDArray[np.uint8]) -> None:
        frame, _ = self.game.observe()
        cv2.resize(frame, (SIZE, SIZE), dst=out, interpolation=cv2.INTER_AREA)

    def frame(self) -> NDArray[np.uint8]:
        """The current frame: the agent's view next to a map."""
        frame, (x, y, angle, _, _) = self.game.observe()
        return view_with_map(frame, self.floor, self.portal, self.apples, (x, y, angle))


def _distance(cell: tuple[int, int], x: float, y: float) -> float:
    centre = middle(cell)
    return float(np.hypot(centre[0] - x, centre[1] - y))
