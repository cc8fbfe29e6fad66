"""The setting `crop` of Atari games: the share of moving pixels that it hides, and the presets without it."""

import numpy as np
import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import parse_run_spec
from tests.support.atari_reference import luminance
from tests.support.crop_share import hidden_share
from workers.engine.envs.atari import CROPPED_ROWS, AtariEnv


@pytest.mark.parametrize(("game", "pct"), [("MsPacman", 24), ("Qbert", 18), ("Amidar", 18), ("Pong", 2)])
def test_stored_share_of_pixels_that_the_crop_hides_is_measured(game: str, pct: int) -> None:
    share = hidden_share(f"ALE/{game}-v5")
    assert round(100 * share) == pct
    assert ENVIRONMENTS[f"ALE/{game}-v5"].crop_hides == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_first_preset_observes_the_rows_that_a_crop_would_hide(algorithm: str) -> None:
    """A sixth of Ms. Pac-Man's maze is in them."""
    game = ENVIRONMENTS["ALE/MsPacman-v5"]
    preset = next(preset for preset in ALGORITHMS[algorithm].presets if preset.suits(game))
    request = {"algorithm": algorithm, "environment": game.id, "stop": {"agent_steps": 1}}
    of_preset = {"config": preset.config, "environment_config": preset.environment_config}
    config = parse_run_spec(request | of_preset).environment_config
    env = AtariEnv(game.id, config)  # type: ignore[arg-type]
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(0, observation)
    for _ in range(100):  # until the maze is drawn
        env.step(0, observation)
    size = len(observation)
    screen = luminance(env.ale.getScreenRGB()).reshape(size, 84 // size, size, 84 // size).mean((1, 3))
    env.close()
    above = slice(0, round(CROPPED_ROWS.start * size / 210))
    assert observation.shape == (size, size, 4)
    assert screen[above].max() > 100
    # It is the maximum of two frames: a sprite may differ.
    assert (abs(observation[above, :, -1] - screen[above]) <= 2).mean() > 0.98
