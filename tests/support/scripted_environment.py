"""A custom environment that plays a script of rewards and ends, and logs what a loop did in it."""

from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments.custom import read_custom_environments

FILE = """
["Custom/Scripted-v0"]
entry_point = "tests.support.scripted_environment:Scripted"
title = "Scripted"
summary = "Rewards and ends of a test."
observation = "vector"
actions = "discrete"
action_names = ["A", "B", "C", "D"]

["Custom/ScriptedBox-v0"]
entry_point = "tests.support.scripted_environment:ScriptedBox"
title = "Scripted, continuous"
summary = "Rewards and ends of a test."
observation = "vector"
actions = "continuous"
action_names = ["X", "Y"]
"""

N_ACTIONS = 4


class Outcome(NamedTuple):
    """What a decision leads to."""

    reward: float
    end: Literal["", "terminated", "truncated", "crashed"] = ""


_ENDS: dict[int, Any] = {
    4: "terminated",
    6: "truncated",
    11: "crashed",
    12: "crashed",
    16: "terminated",
    21: "truncated",
}
_REWARDS = (5.0, -0.3, 0.7, -8.0, 2.0, 0.4, -0.9, 3.0, 0.1)
EVERY_END = [Outcome(_REWARDS[t % len(_REWARDS)], _ENDS.get(t, "")) for t in range(25)]
"""Every kind of end. With t_max = 3, decision 11 crashes behind another of its update, 12 as the first."""


class Decision(NamedTuple):
    """A decision that was taken, and what it led to."""

    state: NDArray[np.float32]
    action: Any
    reward: float
    end: str
    after: NDArray[np.float32]
    """The next state; meaningless if it crashed."""


class Scripted(gymnasium.Env[Any, Any]):
    """All instances together play one script, again and again; states are normal and depend on the seed."""

    outcomes: ClassVar[Iterator[Outcome]]
    decisions: ClassVar[list[Decision]]
    seeds: ClassVar[list[int]]
    """Of the episodes begun."""
    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012
    action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(N_ACTIONS)

    def __init__(self, render_mode: str) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        assert seed is not None
        Scripted.seeds.append(seed)
        self.state = self._draw()
        return self.state, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward, end = next(self.outcomes)
        state, self.state = self.state, self._draw()
        Scripted.decisions.append(Decision(state, np.copy(action), reward, end, self.state))
        if end == "crashed":
            raise RuntimeError("the script has a crash here")
        return self.state, reward, end == "terminated", end == "truncated", {}

    def _draw(self) -> NDArray[np.float32]:
        return self.np_random.standard_normal(4, np.float32)


class ScriptedBox(Scripted):
    """The same for actions of two numbers."""

    action_space = gymnasium.spaces.Box(-100, 100, (2,), np.float32)


def load(folder: Path, outcomes: Iterable[Outcome], *, continuous: bool) -> tuple[Path, dict[str, Any]]:
    """Load a script; returns the file that registers the environment, and its part of a run's request."""
    Scripted.outcomes, Scripted.decisions, Scripted.seeds = cycle(outcomes), [], []
    file = folder / "environments.toml"
    file.write_text(FILE)
    name = "Custom/ScriptedBox-v0" if continuous else "Custom/Scripted-v0"
    described = read_custom_environments(file)[name].describe().model_dump(mode="json")
    return file, {"environment": name, "custom": described}


class Script(Protocol):
    """The fixture `script`."""

    def __call__(self, outcomes: Iterable[Outcome], *, continuous: bool = False) -> dict[str, Any]:
        """Load a script; returns its part of a run's request."""
