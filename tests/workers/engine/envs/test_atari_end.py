"""The end of an Atari game on the real emulator: its last frame and its last observation."""

import numpy as np
import pytest
from ale_py import Action, ALEInterface, roms

from backend.specs.environments.atari import AtariConfig
from tests.support.atari_reference import FRAMES, luminance
from workers.engine.envs.atari import AtariEnv

SEED = 0
"""With its 26 no-ops, the game ends with the second frame of a decision, of four."""


def whole_game() -> tuple[int, list[FRAMES]]:
    """Freeway on a bare emulator: how many frames it has, and the last two."""
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    rom = roms.get_rom_path("freeway")
    assert rom is not None
    ale.loadROM(rom)
    ale.reset_game()
    frames = int(np.random.default_rng(SEED).integers(1, 31))
    for _ in range(frames):
        ale.act(Action.NOOP)
    last = [ale.getScreenRGB()]
    while not ale.game_over():
        ale.act(Action.UP)
        frames += 1
        last = [last[-1], ale.getScreenRGB()]
    return frames, last


@pytest.mark.long
def test_game_ends_with_the_emulators_last_two_frames() -> None:
    env = AtariEnv("ALE/Freeway-v5", AtariConfig(frame_maximum="rgb"))
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(SEED, observation)
    up = env.action_names.index("UP")
    played = int(np.random.default_rng(SEED).integers(1, 31))
    while not (step := env.step(up, observation)).episode_over:
        played += step.frames
    frames, last = whole_game()
    assert (played + step.frames, step.frames, step.truncated) == (frames, 2, False)
    newest = luminance(np.maximum(*last))
    assert not np.array_equal(newest, luminance(last[-1]))
    np.testing.assert_allclose(observation[..., -1], newest, rtol=0, atol=0.5001)
