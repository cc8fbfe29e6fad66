"""Custom gymnasium environments, and the file that registers them."""

import sys
from multiprocessing import parent_process
from pathlib import Path
from time import sleep
from typing import Any

import gymnasium
import numpy as np

HANG_S = 3_600.0

FILE = """
["Custom/Line-v0"]
entry_point = "tests.support.custom_environment:Line"
title = "Line"
summary = "Walk right."
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = { length = 4 }

["Custom/Frames-v1"]
entry_point = "tests.support.custom_environment:Frames"
title = "Frames"
observation = "pixels"
actions = "continuous"
action_names = ["X", "Y"]
"""

UNSUITABLE = """
["Custom/Dict-v0"]
entry_point = "beside_the_file:Unsuitable"
title = "Dict"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = { unsuitable = "observation" }

["Custom/Multi-v0"]
entry_point = "beside_the_file:Unsuitable"
title = "Multi"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = { unsuitable = "action" }

["Custom/NaN-v0"]
entry_point = "beside_the_file:Unsuitable"
title = "NaN"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = { unsuitable = "number" }

["Custom/Step-v0"]
entry_point = "beside_the_file:Unsuitable"
title = "Step"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = { unsuitable = "step" }

["Custom/Render-v0"]
entry_point = "beside_the_file:Unsuitable"
title = "Render"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = { unsuitable = "frame" }

["Custom/Missing-v0"]
entry_point = "no_such_module:Missing"
title = "Missing"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]

["Custom/Beside-v0"]
entry_point = "beside_the_file:Unsuitable"
title = "Beside"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
"""
"""Entries of the module `BESIDE_THE_FILE`: only the last can be used."""

BESIDE_THE_FILE = """
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete


class Unsuitable(gymnasium.Env):
    def __init__(self, unsuitable="", render_mode=None):
        box = Box(-1, 1, (4,))
        self.observation_space = Dict({"position": box}) if unsuitable == "observation" else box
        self.action_space = MultiDiscrete([2, 2]) if unsuitable == "action" else Discrete(2)
        self.unsuitable = unsuitable

    def reset(self, *, seed=None, options=None):
        return np.array([0, 0, np.nan if self.unsuitable == "number" else 0, 0], np.float32), {}

    def step(self, action):
        if self.unsuitable == "step":
            raise KeyError("force")
        return np.zeros(4, np.float32), 0.0, False, False, {}

    def render(self):
        return np.zeros((20, 40) if self.unsuitable == "frame" else (20, 40, 3), np.uint8)
"""

POISONED_BY = """
["Custom/Poisonable-v0"]
entry_point = "tests.support.custom_environment:Poisonable"
title = "Poisonable"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = {{ poison = "{path}" }}
"""
"""The entry of `Poisonable`, which a file at `path` poisons."""

HANGING = """
["Custom/Hanging-v0"]
entry_point = "tests.support.custom_environment:Hanging"
title = "Hanging"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
kwargs = {{ length = 4, where = "{where}" }}
"""
"""The entry of `Hanging`."""

PACED = """
["Custom/Paced-v0"]
entry_point = "tests.support.custom_environment:Paced"
title = "Paced pole"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
"""


def write(folder: Path, text: str = FILE) -> Path:
    path = folder / "environments.toml"
    path.write_text(text)
    return path


class Line(gymnasium.Env[Any, Any]):
    """A line with reward 1 at its right end; `step` raises while `broken` is set."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012
    broken = False

    def __init__(self, length: int, render_mode: str) -> None:
        self.observation_space = gymnasium.spaces.Box(-1, length, (1,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length, self.at = length, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(2))
        sys.stdout.write(f"reset to {self.at}\n")
        return np.array([self.at], np.float64), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if Line.broken:
            raise ZeroDivisionError("the line is broken")
        self.at = max(self.at + 2 * int(action) - 1, 0)
        over = self.at >= self.length
        return np.array([self.at], np.float64), float(over), over, False, {}

    def render(self) -> Any:
        return np.full((20, 40, 3), 10 * self.at, np.uint8)


class Hanging(Line):
    """A line whose code does not return: built in the engine (`where` is "engine") or in one of its children
    ("child"), or reset again ("reset"), as a resume does; with "" it is `Line`."""

    def __init__(self, length: int, where: str, render_mode: str) -> None:
        super().__init__(length, render_mode)
        self.where = where
        self.resets = 0
        if where == ("engine" if parent_process() is None else "child"):
            sleep(HANG_S)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.resets += 1
        if self.where == "reset" and self.resets > 1:
            sleep(HANG_S)
        return super().reset(seed=seed)


class Poisonable(gymnasium.Env[Any, Any]):
    """Random observations; reward 1 for RIGHT. While the file `poison` exists, episodes do not end, and
    observations and rewards are finite but too large to learn from. Of its `info`, `two` is 2 in each step,
    `last` 20 in an episode's last."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012

    def __init__(self, poison: str, render_mode: str) -> None:
        self.observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.poison = Path(poison)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        poisoned = self.poison.exists()
        over = self.steps >= 20 and not poisoned
        info = {"two": 2, "nan": float("nan"), "name": "x", "array": np.ones(2)}
        if over:
            info["last"] = self.steps
        if poisoned:
            return self.observe() * np.float32(1e25), 1e38, over, False, info
        return self.observe(), float(action), over, False, info

    def observe(self) -> Any:
        return self.np_random.uniform(-1, 1, 4).astype(np.float32)

    def render(self) -> Any:
        return np.full((20, 40, 3), 100, np.uint8)


class Paced(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole that leaves most of the processor to the rest of a test: some 2,000 steps a second."""

    def __init__(self, render_mode: str) -> None:
        super().__init__(gymnasium.make("CartPole-v1", render_mode=render_mode))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        sleep(0.0003)
        return super().step(action)


class Frames(gymnasium.Env[Any, Any]):
    def __init__(self, render_mode: str) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (100, 120, 3), np.uint8)
        self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.full((100, 120, 3), 200, np.uint8), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.full((100, 120, 3), 100, np.uint8), float(action.sum()), False, False, {}

    def render(self) -> Any:
        return np.full((100, 120, 3), 100, np.uint8)
