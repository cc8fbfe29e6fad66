"""The papers' Atari pipeline, slowly, on a bare emulator."""

import cv2
import numpy as np
from ale_py import Action, ALEInterface, roms
from numpy.typing import NDArray

FRAMES = NDArray[np.uint8]
AVERAGES = NDArray[np.float32]
"""Of greys, before they are rounded."""


def luminance(rgb: FRAMES) -> AVERAGES:
    """Exact area averages: every pixel of 210×160 as 2×21, of which 5×40 make a new one."""
    fine = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).repeat(2, 0).repeat(21, 1)
    averages: AVERAGES = fine.reshape(84, 5, 84, 40).mean((1, 3)).astype(np.float32)
    return averages


def reference(game: str, seed: int, actions: list[int]) -> tuple[list[AVERAGES], list[float]]:
    """Mnih et al. 2015, methods: repeat 4; maximum of the last two RGB frames; luminance; 84×84; four.

    One episode from 1 to 30 no-ops, to its end or for as many actions as there are.
    """
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    rom = roms.get_rom_path(game)
    assert rom is not None
    ale.loadROM(rom)
    legal = ale.getMinimalActionSet()
    for _ in range(int(np.random.default_rng(seed).integers(1, 31))):
        ale.act(Action.NOOP)
    images = [np.zeros((84, 84), np.float32)] * 3 + [luminance(ale.getScreenRGB())]
    seen, rewards = [np.stack(images, -1)], []
    for action in actions:
        reward, screens = 0.0, [ale.getScreenRGB()]
        for _ in range(4):
            reward += ale.act(legal[action])
            screens.append(ale.getScreenRGB())
            if ale.game_over():
                break
        images = [*images[1:], luminance(np.maximum(screens[-1], screens[-2]))]
        seen.append(np.stack(images, -1))
        rewards.append(reward)
        if ale.game_over():
            break
    return seen, rewards
