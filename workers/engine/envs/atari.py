"""Atari 2600 through ALE, preprocessed as Mnih et al. 2015 (methods) and 2016 (supplement, section 8).

An action is held for `frame_skip` frames; of the last two frames the per-pixel maximum is taken, brought
to luminance and to 84×84; four such pictures are stacked, oldest first, along the last axis. An episode
starts with 1 to `noop_max` no-op frames and ends with the game.

The first observation of an episode is three black pictures and one frame. `max_frames` counts the no-ops
and is looked at after each decision.

Each deviation from the papers is a setting of `AtariConfig`, off by default but for `frame_maximum`:
`sticky_actions`, `full_action_set`, `fire_at_reset`, `life_loss_terminal`, `mode`, `difficulty`,
`picture_size`, and `crop`, whose rows are those of OpenAI's universe-starter-agent for every game.

Differences from the papers: with `frame_skip=1` there is one frame and no maximum. With
`frame_maximum="luminance"`, the default, the maximum is taken after greyscale, which is a little faster, and
the picture of a game that ends within a decision may hold an older frame (nobody learns from it); `"rgb"` is
the papers' order, exactly. ALE's own luminance weights stand for the papers' "Y channel". The picture is
shrunk by area averaging, where the papers name no method.
"""

from typing import Any

import cv2
import numpy as np
from ale_py import Action, ALEInterface, LoggerMode, roms
from numpy.typing import NDArray

from backend.specs.environments.atari import AtariConfig
from workers.engine.envs.base import ActionSpace, Discrete, OnFrame, Step
from workers.engine.envs.shrink import Shrink

STACK = 4
CROPPED_ROWS = slice(34, 194)
"""Of the screen, where `crop` is set."""
HISTORY_FRAMES_PER_PICTURE = 2
"""Of the frames that pass, every second one is shown to people: 30 a second."""

cv2.setNumThreads(1)  # one thread a process: the processes are the parallelism
ALEInterface.setLoggerMode(LoggerMode.Error)


def _rom_name(environment: str) -> str:
    """`ALE/SpaceInvaders-v5` -> `space_invaders`."""
    game = environment.removeprefix("ALE/").removesuffix("-v5")
    known = {name.replace("_", ""): name for name in roms.get_all_rom_ids()}
    return known[game.lower()]


class AtariWorld:
    """One game."""

    observation_shape: tuple[int, ...]
    observation_dtype = np.dtype(np.uint8)
    frames_per_second = 60 / HISTORY_FRAMES_PER_PICTURE

    def __init__(self, environment: str, config: AtariConfig) -> None:
        self._config = config
        self._ale = ALEInterface()
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setInt("frame_skip", 1)
        self._ale.setInt("random_seed", 0)
        rom = roms.get_rom_path(_rom_name(environment))
        assert rom is not None
        self._ale.loadROM(rom)
        if config.mode is not None:
            self._ale.setMode(config.mode)
        if config.difficulty is not None:
            self._ale.setDifficulty(config.difficulty)
        self._ale.reset_game()
        self._power_on = self._ale.cloneSystemState()
        minimal = self._ale.getMinimalActionSet()
        self._actions = self._ale.getLegalActionSet() if config.full_action_set else minimal
        self._fires = config.fire_at_reset and Action.FIRE in minimal
        self.action_names = tuple(action.name for action in self._actions)
        self.action_space: ActionSpace = Discrete(len(self._actions))
        self.on_frame: OnFrame | None = None
        height, width = self._ale.getScreenDims()
        channels = (3,) if config.frame_maximum == "rgb" else ()
        self._screens = np.zeros((2, height, width, *channels), np.uint8)
        size = (42, 42) if config.picture_size == "42x42" else (84, 84)
        self._rows = CROPPED_ROWS if config.crop else slice(0, height)
        self._shrink = Shrink(self._rows.stop - self._rows.start, width, size)
        self.observation_shape = (*size, STACK)
        self._stack = np.zeros(size, np.uint32)  # a pixel's four pictures, the newest uppermost
        self._newest = np.zeros(size, np.uint32)
        self._frames = 0
        self._lives = 0
        self._sticky: np.random.Generator | None = None
        self._held = Action.NOOP

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Switch the console off and on and let 1 to `noop_max` frames pass, as many as the seed says.

        With `fire_at_reset`, FIRE is then held for `frame_skip` frames.
        """
        rng = np.random.default_rng(seed)
        # Some games carry memory over a mere reset.
        self._ale.restoreSystemState(self._power_on)
        self._ale.reset_game()
        self._frames = 0
        if self._config.noop_max:
            self._wait(Action.NOOP, int(rng.integers(1, self._config.noop_max + 1)))
        if self._fires:
            self._wait(Action.FIRE, self._config.frame_skip)
        self._sticky = rng if self._config.sticky_actions else None
        self._held = Action.NOOP
        self._lives = self._ale.lives()
        self._screens[0] = 0
        self._capture(1)
        self._stack[:] = 0
        self._push(out)

    def step(self, action: int, out: NDArray[Any]) -> Step:
        """Hold the action for `frame_skip` frames, fewer where the game ends."""
        chosen = self._actions[action]
        skip = self._config.frame_skip
        exact = self._config.frame_maximum == "rgb"
        reward = 0.0
        before = self._frames
        over = False
        for k in range(skip):
            if self._sticky is None or self._sticky.random() >= self._config.sticky_actions:
                self._held = chosen
            reward += self._ale.act(self._held)
            self._tick()
            over = self._ale.game_over()
            if k >= skip - 2 or over or exact:
                self._screens[0] = self._screens[1]
                self._capture(1)
            if over:
                break
        if skip == 1:
            self._screens[0] = self._screens[1]
        self._push(out)
        lives = self._ale.lives()
        lost_life = lives < self._lives
        self._lives = lives
        truncated = not over and self._frames >= self._config.max_frames
        return Step(
            reward=reward,
            terminal=over or (lost_life and self._config.life_loss_terminal),
            ended=over or truncated,
            truncated=truncated,
            frames=self._frames - before,
        )

    def lives(self) -> int:
        """Lives left."""
        return self._lives

    def close(self) -> None:
        """ALE frees itself."""

    def _wait(self, held: Action, frames: int) -> None:
        for _ in range(frames):
            self._ale.act(held)
            self._tick()
            if self._ale.game_over():
                self._ale.reset_game()

    def _tick(self) -> None:
        self._frames += 1
        if self.on_frame is not None and self._frames % HISTORY_FRAMES_PER_PICTURE == 0:
            self.on_frame(self._ale.getScreenRGB())

    def _capture(self, slot: int) -> None:
        if self._config.frame_maximum == "rgb":
            self._ale.getScreenRGB(self._screens[slot])
        else:
            self._ale.getScreenGrayscale(self._screens[slot])

    def _push(self, out: NDArray[np.uint8]) -> None:
        picture = np.maximum(self._screens[0, self._rows], self._screens[1, self._rows])
        if self._config.frame_maximum == "rgb":
            picture = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
        np.copyto(self._newest, self._shrink(picture), casting="unsafe")
        self._newest <<= 24
        self._stack >>= 8
        self._stack |= self._newest
        np.copyto(out, self._stack.view(np.uint8).reshape(out.shape))
