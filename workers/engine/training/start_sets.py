"""Verifies a start set by replay, and derives its emulator states."""

import hashlib
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import ale_py
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import ROM_MD5, AtariConfig
from backend.specs.protocols import PROTOCOLS
from backend.specs.start_sets import LEAD_FRAMES, RecordedGame, StartPoint, StartSetContent
from workers.engine.envs.atari import AtariEnv
from workers.engine.envs.starts import EpisodeStart


class StartSetMismatchError(ValueError):
    """Replaying a game gave another state than the set has; the message states where."""


def verify(wanted: StartSetContent) -> tuple[StartSetContent, list[EpisodeStart]]:
    """Replay the games of a set, and compare the state at each point with the set's.

    Each emulator state is then restored and played on to its point, and compared once more.

    Args:
        wanted: the set. Where it has no frames or hashes, those of the replay are taken.

    Returns:
        The set with the frames and hashes of every point, and the start of each point, in their order.

    Raises:
        StartSetMismatchError: a replay gave another score, number of frames, RAM or screen; or the ROM is
            another one.
    """
    rom_md5 = ROM_MD5[wanted.environment]
    if wanted.rom_md5 not in (None, rom_md5):
        raise StartSetMismatchError(f"the set is of ROM {wanted.rom_md5}, and this host has {rom_md5}")
    points: list[StartPoint | None] = [None] * len(wanted.points)
    starts: list[EpisodeStart | None] = [None] * len(wanted.points)
    by_game = sorted(range(len(points)), key=lambda i: (wanted.points[i].game, wanted.points[i].decision))
    for number, indices in groupby(by_game, key=lambda i: wanted.points[i].game):
        replay = _Replay(wanted.environment, wanted.games[number], number)
        for i in indices:
            points[i], starts[i] = replay.play_to(wanted.points[i])
    verified = [point for point in points if point is not None]
    kept = [start for start in starts if start is not None]
    _compare_restored(wanted, verified, kept)
    update = {"points": verified, "rom_md5": rom_md5, "ale_py": ale_py.__version__}
    return wanted.model_copy(update=update), kept


class _Replay:
    """One game, played again."""

    def __init__(self, environment: str, game: RecordedGame, number: int) -> None:
        config = AtariConfig.model_validate(game.environment_config)
        self._env = AtariEnv(environment, config)
        self._game = number
        self._actions = game.decisions()
        self._frame_skip = config.frame_skip
        self._observation = np.empty(self._env.observation_shape, self._env.observation_dtype)
        self._score = 0.0
        self._decision = 0
        # The states before the latest decisions, from which a lead begins.
        self._states: deque[Any] = deque(maxlen=-(-LEAD_FRAMES // config.frame_skip))
        self._env.reset(game.seed, self._observation)

    def play_to(self, point: StartPoint) -> tuple[StartPoint, EpisodeStart]:
        """Play to a point that is not before the latest one."""
        env = self._env
        lead = self._states.maxlen or 0
        while self._decision < point.decision:
            if point.decision - self._decision <= lead:
                self._states.append(env.ale.cloneSystemState())
            action = self._actions[self._decision]
            if action >= len(env.actions):
                raise self._mismatch(f"decision {self._decision} has action {action}, which does not exist")
            step = env.step(action, self._observation)
            self._score += step.reward
            self._decision += 1
            if step.episode_over:
                raise self._mismatch(f"the game is over after decision {self._decision}")
        if self._decision < lead:
            raise self._mismatch(f"decision {point.decision} is among the first {LEAD_FRAMES} frames")
        if self._score != point.score:
            raise self._mismatch(
                f"the score before decision {point.decision} is {self._score:g}, and the set has "
                f"{point.score:g}"
            )
        ram, screen = _hashes(env)
        measured = {"frames": env.frames, "ram_sha256": ram, "screen_sha256": screen}
        for name, value in measured.items():
            if getattr(point, name) not in (None, value):
                what = name.removesuffix("_sha256")
                raise self._mismatch(f"{what} before decision {point.decision} differ from the set's")
        # `_states` holds the last `lead` states: its first is the one before the decision `first`.
        first = self._decision - lead
        held = [
            env.actions[action].value
            for action in self._actions[first : self._decision]
            for _ in range(self._frame_skip)
        ]
        return point.model_copy(update=measured), EpisodeStart(
            self._states[0].serialize(), tuple(held), env.frames
        )

    def _mismatch(self, message: str) -> StartSetMismatchError:
        return StartSetMismatchError(f"game {self._game}: {message}")


def _compare_restored(
    wanted: StartSetContent, points: Sequence[StartPoint], starts: list[EpisodeStart]
) -> None:
    """Begin at each start as an evaluation does, and compare RAM and screen."""
    config = PROTOCOLS["agent_starts"].evaluation_config(ENVIRONMENTS[wanted.environment].config())
    env = AtariEnv(wanted.environment, AtariConfig.model_validate(config.model_dump()))
    env.starts = starts
    observation: NDArray[np.uint8] = np.empty(env.observation_shape, np.uint8)
    for i, point in enumerate(points):
        env.reset(i, observation)
        if _hashes(env) != (point.ram_sha256, point.screen_sha256):
            raise StartSetMismatchError(f"point {i}: the emulator's state cannot be restored exactly")


def _hashes(env: AtariEnv) -> tuple[str, str]:
    """SHA-256 of RAM and screen."""
    ram, screen = env.ale.getRAM().tobytes(), env.ale.getScreenRGB().tobytes()
    return hashlib.sha256(ram).hexdigest(), hashlib.sha256(screen).hexdigest()
