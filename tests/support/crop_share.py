"""Measure what share of a game's changing pixels the setting `crop` hides.

    python -m tests.support.crop_share > backend/specs/environments/atari_crop.csv

Prints `atari_crop.csv` for every game of the catalogue. A run of random play from power-on without no-ops:
251 decisions of the minimal action set, each repeated for four frames. After each decision but the first, in
which some games only begin to draw, the RGB screen is compared with the one before it; pixels that differ are
counted, inside and outside the rows that the crop keeps. The screens before and after the end of a game are
not compared.
"""

import sys
from collections.abc import Callable

import numpy as np

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from workers.engine.envs.atari import CROPPED_ROWS, AtariEnv

DECISIONS = 250
FRAMES = 4


def hidden_share(environment: str) -> float:
    """Changing pixels outside the cropped rows, as a share of all changing pixels; 0 if none changes."""
    env = AtariEnv(environment, AtariConfig(noop_max=0))
    ale, actions = env.ale, env.actions
    rng = np.random.default_rng(0)
    ale.reset_game()
    before = ale.getScreenRGB()
    inside = outside = 0
    for k in range(1 + DECISIONS):
        action = actions[rng.integers(len(actions))]
        for _ in range(FRAMES):
            ale.act(action)
        after = ale.getScreenRGB()
        if ale.game_over():
            ale.reset_game()
            after = ale.getScreenRGB()
        elif k > 0:
            changed_H = (before != after).any(-1).sum(-1)
            kept = int(changed_H[CROPPED_ROWS].sum())
            inside += kept
            outside += int(changed_H.sum()) - kept
        before = after
    env.close()
    return outside / max(inside + outside, 1)


def main(write: Callable[[str], object] = sys.stdout.write) -> None:
    """Print the table."""
    write("game,hidden_share\n")
    for environment in ENVIRONMENTS.values():
        if environment.family == "atari":
            game = environment.id.removeprefix("ALE/").removesuffix("-v5")
            write(f"{game},{hidden_share(environment.id):.3f}\n")


if __name__ == "__main__":
    main()
