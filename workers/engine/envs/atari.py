"""Atari 2600 through ALE, preprocessed as Mnih et al. 2015 (methods) and 2016 (supplement, section 8).

An action is repeated for `frame_skip` frames. The per-pixel maximum of the last two frames is converted to
luminance and resized to 84×84; four of these are stacked, oldest first, along the last axis. An episode
starts with 1 to `noop_max` no-op frames and ends with the game.

The first observation of an episode is three black frames and one real one. `max_frames` counts the no-ops
and is checked after each decision. With `starts` an episode starts from a recorded state instead: its first
observation stacks the game's frames, and `max_frames` counts those before the start, too.

Each deviation from the papers is a field of `AtariConfig`, off by default except `frame_maximum`:
`sticky_actions`, `full_action_set`, `fire_at_reset`, `life_loss_terminal`, `mode`, `difficulty`,
`observation_size`, and `crop`, whose rows are those of OpenAI's universe-starter-agent for every game.

Differences from the papers: with `frame_skip=1` there is one frame and no maximum. With
`frame_maximum="luminance"`, the default, the maximum is taken after greyscale, which is a little faster, and
the last observation of a game that ends within a decision may hold an older frame (nothing is learned from
it); `"rgb"` is exactly the papers' order. ALE's luminance weights replace the papers' "Y channel". Frames are
resized by area averaging; the papers name no method.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from ale_py import Action, ALEInterface, ALEState, LoggerMode, roms
from numpy.typing import NDArray

from backend.specs.environments.atari import AtariConfig
from workers.engine.envs.base import ActionSpace, Discrete, OnFrame, Step
from workers.engine.envs.images import Shrink
from workers.engine.envs.starts import EpisodeStart

STACK = 4
CROPPED_ROWS = slice(34, 194)
"""Screen rows kept with `crop`."""
EMULATOR_FRAMES_PER_VIDEO_FRAME = 2
"""Every second frame is passed to `on_frame`: 30 a second."""
EMULATOR_FRAMES_PER_SECOND = 60

Snapshot = dict[str, NDArray[Any]]
"""State of a game: the emulator's, the latest screens, the stacked frames, counters, and the random numbers
of sticky actions."""

cv2.setNumThreads(1)  # one thread per process: the processes are the parallelism
ALEInterface.setLoggerMode(LoggerMode.Error)


def rom_sha256(environment: str) -> str:
    """SHA-256 of a game's ROM, in hexadecimal."""
    rom = roms.get_rom_path(_rom_name(environment))
    assert rom is not None
    return hashlib.sha256(Path(rom).read_bytes()).hexdigest()


def _rom_name(environment: str) -> str:
    """`ALE/SpaceInvaders-v5` -> `space_invaders`."""
    game = environment.removeprefix("ALE/").removesuffix("-v5")
    known = {name.replace("_", ""): name for name in roms.get_all_rom_ids()}
    return known[game.lower()]


class AtariEnv:
    """One game."""

    observation_shape: tuple[int, ...]
    observation_dtype = np.dtype(np.uint8)
    frames_per_second = EMULATOR_FRAMES_PER_SECOND / EMULATOR_FRAMES_PER_VIDEO_FRAME

    def __init__(self, environment: str, config: AtariConfig) -> None:
        self._config = config
        self.ale = ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("frame_skip", 1)
        self.ale.setInt("random_seed", 0)
        rom = roms.get_rom_path(_rom_name(environment))
        assert rom is not None
        self.ale.loadROM(rom)
        if config.mode is not None:
            self.ale.setMode(config.mode)
        if config.difficulty is not None:
            self.ale.setDifficulty(config.difficulty)
        self.ale.reset_game()
        self._power_on = self.ale.cloneSystemState()
        minimal = self.ale.getMinimalActionSet()
        self.actions = self.ale.getLegalActionSet() if config.full_action_set else minimal
        self._fires = config.fire_at_reset and Action.FIRE in minimal
        self.action_names = tuple(action.name for action in self.actions)
        self.action_space: ActionSpace = Discrete(len(self.actions))
        self.on_frame: OnFrame | None = None
        self.starts: Sequence[EpisodeStart] = ()
        """Recorded states: an episode of seed k starts at the k-th, modulo their number. Empty: power on."""
        height, width = self.ale.getScreenDims()
        channels = (3,) if config.frame_maximum == "rgb" else ()
        self.screens = np.zeros((2, height, width, *channels), np.uint8)
        size = (42, 42) if config.observation_size == "42x42" else (84, 84)
        self._rows = CROPPED_ROWS if config.crop else slice(0, height)
        self._shrink = Shrink(self._rows.stop - self._rows.start, width, size)
        self.observation_shape = (*size, STACK)
        self._stack = np.zeros(size, np.uint32)  # four frames per pixel, the newest in the top byte
        self._newest = np.zeros(size, np.uint32)
        self._frames = 0
        self._frames_per_video_frame = EMULATOR_FRAMES_PER_VIDEO_FRAME
        self._lives = 0
        self._sticky: np.random.Generator | None = None
        self._held = Action.NOOP

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Power-cycle the console, then play 1 to `noop_max` no-op frames, a number drawn from the seed.

        With `fire_at_reset`, FIRE is then repeated for `frame_skip` frames. With `starts`, the episode starts
        from one of them instead.
        """
        if self.starts:
            self._begin_at(self.starts[seed % len(self.starts)], out)
            return
        rng = np.random.default_rng(seed)
        # Some games keep memory across a plain reset.
        self.ale.restoreSystemState(self._power_on)
        self.ale.reset_game()
        self._frames = 0
        if self._config.noop_max:
            self._wait(Action.NOOP, int(rng.integers(1, self._config.noop_max + 1)))
        if self._fires:
            self._wait(Action.FIRE, self._config.frame_skip)
        self._sticky = rng if self._config.sticky_actions else None
        self._held = Action.NOOP
        self._lives = self.ale.lives()
        self.screens[0] = 0
        self._capture(1)
        self._stack[:] = 0
        self._push(out)

    def step(self, action: int, out: NDArray[Any]) -> Step:
        """Repeat the action for `frame_skip` frames, fewer if the game ends."""
        chosen = self.actions[action]
        skip = self._config.frame_skip
        exact = self._config.frame_maximum == "rgb"
        reward = 0.0
        before = self._frames
        over = False
        for k in range(skip):
            if self._sticky is None or self._sticky.random() >= self._config.sticky_actions:
                self._held = chosen
            reward += self.ale.act(self._held)
            self._tick()
            over = self.ale.game_over()
            if k >= skip - 2 or over or exact:
                self.screens[0] = self.screens[1]
                self._capture(1)
            if over:
                break
        if skip == 1:
            self.screens[0] = self.screens[1]
        self._push(out)
        lives = self.ale.lives()
        lost_life = lives < self._lives
        self._lives = lives
        truncated = not over and self._frames >= self._config.max_frames
        return Step(
            reward=reward,
            terminated=over or (lost_life and self._config.life_loss_terminal),
            episode_over=over or truncated,
            truncated=truncated,
            frames=self._frames - before,
        )

    def draw_sticky_actions(self, rng: np.random.Generator) -> None:
        """Draw the repeated actions of the rest of the episode from other random numbers."""
        if self._sticky is not None:
            self._sticky = rng

    @property
    def frames(self) -> int:
        """Frames of the episode so far."""
        return self._frames

    def snapshot(self) -> Snapshot:
        """The whole state of the game, from which `restore_snapshot` plays on exactly.

        The emulator's own screen is no part of it: the screen is right again after the next decision.
        """
        generator = "" if self._sticky is None else json.dumps(self._sticky.bit_generator.state)
        return {
            "emulator": np.frombuffer(self.ale.cloneSystemState().serialize(), np.uint8),
            "screens": self.screens.copy(),
            "stack": self._stack.copy(),
            "counters": np.array([self._frames, self._lives, self._held.value], np.int64),
            "sticky": np.array(generator),
        }

    def restore_snapshot(self, snapshot: Snapshot, out: NDArray[Any]) -> None:
        """Return to a state of a game with the same settings; write its observation to `out`."""
        self.ale.restoreSystemState(ALEState(snapshot["emulator"].tobytes()))
        self.screens[:] = snapshot["screens"]
        self._stack[:] = snapshot["stack"]
        self._frames, self._lives, held = snapshot["counters"].tolist()
        self._held = Action(held)
        self._sticky = None
        if generator := str(snapshot["sticky"]):
            self._sticky = np.random.default_rng(0)
            self._sticky.bit_generator.state = json.loads(generator)
        np.copyto(out, self._stack.view(np.uint8).reshape(out.shape))

    def frame(self) -> NDArray[np.uint8]:
        """(H, W, 3) emulator's screen: the newest frame, except right after `restore_snapshot`."""
        screen: NDArray[np.uint8] = self.ale.getScreenRGB()
        return screen

    def show_every_frame(self) -> None:
        """Pass every frame to `on_frame`, 60 a second: people see what flickers."""
        self._frames_per_video_frame = 1
        self.frames_per_second = float(EMULATOR_FRAMES_PER_SECOND)

    def lives(self) -> int:
        """Lives left."""
        return self._lives

    def close(self) -> None:
        """Nothing to do: ALE frees itself."""

    def _begin_at(self, start: EpisodeStart, out: NDArray[Any]) -> None:
        self.ale.restoreSystemState(ALEState(start.state))
        self.screens[:] = 0
        self._stack[:] = 0
        for left, action in zip(range(len(start.lead) - 1, -1, -1), start.lead, strict=True):
            self.ale.act(Action(action))
            self.screens[0] = self.screens[1]
            self._capture(1)
            if left % self._config.frame_skip == 0:
                self._push(out)
        self._frames = start.frames
        self._sticky = None
        self._held = Action.NOOP
        self._lives = self.ale.lives()

    def _wait(self, held: Action, frames: int) -> None:
        for _ in range(frames):
            self.ale.act(held)
            self._tick()
            if self.ale.game_over():
                self.ale.reset_game()

    def _tick(self) -> None:
        self._frames += 1
        if self.on_frame is not None and self._frames % self._frames_per_video_frame == 0:
            self.on_frame(self.ale.getScreenRGB())

    def _capture(self, slot: int) -> None:
        if self._config.frame_maximum == "rgb":
            self.ale.getScreenRGB(self.screens[slot])
        else:
            self.ale.getScreenGrayscale(self.screens[slot])

    def _push(self, out: NDArray[np.uint8]) -> None:
        frame = np.maximum(self.screens[0, self._rows], self.screens[1, self._rows])
        if self._config.frame_maximum == "rgb":
            frame = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        np.copyto(self._newest, self._shrink(frame), casting="unsafe")
        self._newest <<= 24
        self._stack >>= 8
        self._stack |= self._newest
        np.copyto(out, self._stack.view(np.uint8).reshape(out.shape))
