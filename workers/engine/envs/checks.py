"""Checks of custom environments, each with a sentence of its own.

`check_environment` tries one out: its spaces, what it returns, its frames and its seeds. In training the same
`CheckedEnv` checks each reset and step.
"""

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from backend.specs.environments.custom import CustomEnvironment, CustomEnvironmentsError

GymEnv = gymnasium.Env[Any, Any]
R = TypeVar("R")

MAX_CHANNELS = 4
"""(H, W, C) pixels with more have their channels first, if the first axis has at most as many."""
MAX_REWARD = float(np.finfo(np.float32).max)
SEEDS = 5
DECISIONS = 100
MIN_DECISIONS = 3
"""Decisions of an episode of the trial: `DECISIONS`, or fewer in a slow environment."""
SLOW_S = 2.0


def check_environment(entry: CustomEnvironment, create: Callable[[], GymEnv]) -> None:
    """Try out a custom environment.

    The first seed is reset in two new environments; one of them then plays all seeds, and is compared with a
    new one for each.

    Args:
        entry: its description.
        create: creates one.

    Raises:
        CustomEnvironmentsError: it cannot be used; the message names the environment and the value.
    """
    deadline = time.monotonic() + SLOW_S
    used = CheckedEnv(entry, create())
    try:
        for seed in range(SEEDS):
            new = CheckedEnv(entry, create())
            try:
                expected = _play(new, seed, deadline)
                _check_frame(entry, new.render())
            finally:
                new.close()
            _check_repeated(entry, seed, expected, _play(used, seed, deadline))
            if seed and time.monotonic() > deadline:
                break
    finally:
        used.close()


class CheckedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A custom environment whose spaces fit its description, and whose every reset and step is checked.

    Raises:
        CustomEnvironmentsError: its spaces are not supported, or are not those of the description.
    """

    def __init__(self, entry: CustomEnvironment, env: GymEnv) -> None:
        super().__init__(env)
        _check_spaces(entry, env.observation_space, env.action_space)
        self._id = entry.id
        shape = env.observation_space.shape
        assert shape is not None
        self._shape = shape
        self._is_vector = len(shape) == 1
        self._zeros = np.zeros(shape[0], np.float32)
        self._seed: int | None = None
        self._decisions = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode.

        Raises:
            CustomEnvironmentsError: the observation cannot be used.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        self._seed, self._decisions = seed, 0
        return self._checked(observation), info

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Take one step.

        Raises:
            CustomEnvironmentsError: the observation or the reward cannot be used.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._decisions += 1
        reward = float(reward)
        if not -MAX_REWARD <= reward <= MAX_REWARD:  # true for NaN, too
            raise self._error(f"reward is {reward}", "return a finite number that fits into a float32")
        return self._checked(observation), reward, terminated, truncated, info

    def _checked(self, observation: Any) -> NDArray[Any]:
        value = np.asarray(observation)
        if value.shape != self._shape:
            raise self._error(f"observation has the shape {value.shape}", f"its space has {self._shape}")
        if not self._is_vector:
            if value.dtype != np.uint8:
                raise self._error(f"observation is {value.dtype}", "its space is uint8")
            return value
        number = value
        if value.dtype != np.float32:
            with np.errstate(over="ignore"):
                number = value.astype(np.float32)
        if not math.isfinite(number.dot(self._zeros)):  # a fraction of the time of `np.isfinite`
            index = int(np.argmin(np.isfinite(number)))
            raise self._error(f"observation[{index}] is {value[index]}", "return finite numbers")
        return number

    def _error(self, fault: str, advice: str) -> CustomEnvironmentsError:
        place = f"decision {self._decisions}" if self._decisions else "the reset"
        return CustomEnvironmentsError(
            f"{self._id}: {fault} in {place} of the episode with the seed {self._seed}; {advice}"
        )


def _check_spaces(
    entry: CustomEnvironment, observations: gymnasium.Space[Any], actions: gymnasium.Space[Any]
) -> None:
    def refuse(fault: str) -> None:
        raise CustomEnvironmentsError(f"{entry.id}{fault}")

    if not isinstance(observations, Box) or len(observations.shape) not in (1, 3):
        refuse(
            f": observation space {observations} is not supported: use a Box of (D,) numbers or of "
            "(H, W, C) pixels"
        )
    shape = observations.shape
    assert shape is not None
    if 0 in shape:
        refuse(f": observation space {observations} is empty")
    observation = "vector" if len(shape) == 1 else "pixels"
    if observation == "pixels" and observations.dtype != np.uint8:
        refuse(
            f": observation space has pixels of {observations.dtype}; return uint8 from 0 to 255, or a vector"
        )
    if observation == "pixels" and shape[0] <= MAX_CHANNELS < shape[2]:
        refuse(
            f": observation space has the shape {shape}, with its channels first; return (H, W, C), "
            f"such as by np.moveaxis(observation, 0, -1)"
        )
    is_continuous = isinstance(actions, Box) and len(actions.shape) == 1
    if not is_continuous and not (isinstance(actions, Discrete) and actions.start == 0):
        refuse(
            f": action space {actions} is not supported: use Discrete starting at 0, or a Box of (D,) numbers"
        )
    if (entry.actions == "continuous") is not is_continuous:
        refuse(f".actions: {entry.actions}, but the environment has {actions}")
    count = int(actions.n) if isinstance(actions, Discrete) else actions.shape[0] if actions.shape else 0
    if len(entry.action_names) != count:
        refuse(f".action_names: {len(entry.action_names)} names for {count} actions")
    if entry.observation != observation:
        refuse(f".observation: {entry.observation}, but the environment gives {observation}")


def _check_frame(entry: CustomEnvironment, frame: Any) -> None:
    shape = np.shape(frame)
    if len(shape) != 3 or shape[2] != 3:
        raise CustomEnvironmentsError(
            f"{entry.id}: render returned an array of shape {shape}; return (H, W, 3) RGB bytes"
        )


_Transition = tuple[NDArray[Any], float, bool]
"""Next observation, reward and whether the episode is over."""


def _play(env: CheckedEnv, seed: int, deadline: float) -> list[_Transition]:
    """Play an episode's first decisions with actions that the seed determines."""
    rng = np.random.default_rng(seed)
    space = env.action_space
    observation, _ = env.reset(seed=seed)
    played: list[_Transition] = [(observation.copy(), 0.0, False)]
    for t in range(DECISIONS):
        if t >= MIN_DECISIONS and time.monotonic() > deadline:
            break
        if isinstance(space, Box):
            action: Any = np.clip(rng.uniform(-1, 1, space.shape), space.low, space.high).astype(np.float32)
        else:
            assert isinstance(space, Discrete)
            action = int(rng.integers(space.n))
        observation, reward, terminated, truncated, _ = env.step(action)
        over = bool(terminated or truncated)
        played.append((observation.copy(), reward, over))
        if over:
            break
    return played


def _check_repeated(
    entry: CustomEnvironment, seed: int, expected: list[_Transition], repeated: list[_Transition]
) -> None:
    """Check that two environments played one episode, as far as both did."""
    for t, (new, other) in enumerate(zip(expected, repeated, strict=False)):
        fault = None
        if not np.array_equal(new[0], other[0]):
            index = np.unravel_index(int(np.argmax(new[0] != other[0])), new[0].shape)
            name = f"observation[{', '.join(map(str, index))}]"
            fault = f"{name} is {new[0][index]} in one and {other[0][index]} in the other"
        elif new[1] != other[1]:
            fault = f"the reward is {new[1]} in one and {other[1]} in the other"
        elif new[2] != other[2]:
            fault = "the episode is over in one only"
        if fault is None:
            continue
        place = f"in decision {t}" if t else "after the reset"
        if seed == 0:
            raise CustomEnvironmentsError(
                f"{entry.id}: two environments reset with the seed 0 differ under equal actions: {place} "
                f"{fault}; draw all random numbers from self.np_random, seeded by super().reset(seed=seed)"
            )
        raise CustomEnvironmentsError(
            f"{entry.id}: a new environment and one that has played {seed} episode{'s' if seed > 1 else ''} "
            f"differ after a reset with the seed {seed} under equal actions: {place} {fault}; let reset "
            "restore all that an episode changes, or create the environment in reset"
        )
