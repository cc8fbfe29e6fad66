"""A gymnasium environment of a host's owner, and the file that names it."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

FILE = """
["Own/Line-v0"]
entry_point = "tests.support.own_world:Line"
title = "Line"
summary = "Walk right."
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = { length = 4 }

["Own/Pictures-v1"]
entry_point = "tests.support.own_world:Pictures"
title = "Pictures"
observation = "pixels"
actions = "continuous"
action_names = ["X", "Y"]
"""


def write(folder: Path, text: str = FILE) -> Path:
    path = folder / "environments.toml"
    path.write_text(text)
    return path


class Line(gymnasium.Env[Any, Any]):
    """At the right end 1; further on, the code breaks."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012
    broken = False

    def __init__(self, length: int, render_mode: str) -> None:
        self.observation_space = gymnasium.spaces.Box(-1, length, (1,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length, self.at = length, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(2))
        return np.array([self.at], np.float64), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if Line.broken:
            raise ZeroDivisionError("the line is broken")
        self.at = max(self.at + 2 * int(action) - 1, 0)
        over = self.at >= self.length
        return np.array([self.at], np.float64), float(over), over, False, {}

    def render(self) -> Any:
        return np.full((20, 40, 3), 10 * self.at, np.uint8)


class Pictures(gymnasium.Env[Any, Any]):
    def __init__(self, render_mode: str) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (100, 120, 3), np.uint8)
        self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.full((100, 120, 3), 200, np.uint8), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.full((100, 120, 3), 100, np.uint8), float(action.sum()), False, False, {}
