"""An environment of Callboard behind gymnasium's interface."""

from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from backend.specs.environments import ENVIRONMENTS
from workers.engine.envs import Box, make_env
from workers.engine.envs.base import Env


@runtime_checkable
class _Drawable(Protocol):
    """An environment that can draw the first frame of an episode, which it may not emit before a step."""

    def frame(self) -> NDArray[np.uint8]: ...


@runtime_checkable
class _Bounded(Protocol):
    """An environment whose observations are numbers, not bytes."""

    observation_bounds: tuple[ArrayLike, ArrayLike]


class CallboardEnv(gymnasium.Env[NDArray[Any], Any]):
    """One environment. It limits its own episodes, so no `TimeLimit` is needed.

    Args:
        environment: the id in Callboard's catalogue, such as `Catch-v0`.
        render_mode: None or `rgb_array`.
        config: settings of the environment; defaults are the catalogue's.

    Raises:
        pydantic.ValidationError: a setting does not exist or is outside its bounds.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, environment: str, render_mode: str | None = None, **config: Any) -> None:
        described = ENVIRONMENTS[environment]
        self._env = make_env(environment, described.config(**config))
        self._frame: NDArray[np.uint8] | None = None
        self._is_over = True
        self.render_mode = render_mode
        self.metadata = CallboardEnv.metadata | {"render_fps": round(self._env.frames_per_second)}
        if render_mode == "rgb_array":
            self._env.on_frame = self._keep
        dtype, shape = self._env.observation_dtype.type, self._env.observation_shape
        low, high = (0, 255) if dtype is np.uint8 else _bounds(self._env)
        self.observation_space = gymnasium.spaces.Box(
            np.broadcast_to(np.asarray(low, dtype), shape),
            np.broadcast_to(np.asarray(high, dtype), shape),
            dtype=dtype,
        )
        space = self._env.action_space
        self.action_space = (
            gymnasium.spaces.Box(np.array(space.low, np.float32), np.array(space.high, np.float32))
            if isinstance(space, Box)
            else gymnasium.spaces.Discrete(space.n)
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode; a `seed` determines it and those that follow."""
        super().reset(seed=seed)
        observation = self._empty()
        self._env.reset(int(self.np_random.integers(2**31)), observation)
        self._is_over = False
        if self.render_mode == "rgb_array" and isinstance(self._env, _Drawable):
            self._frame = self._env.frame()
        return observation, {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Take one decision. `info["frames"]` counts the emulator frames that passed.

        An episode whose environment crashed is truncated, with `info["crashed"]`.

        Raises:
            gymnasium.error.ResetNeeded: the episode is over, or none has begun.
            gymnasium.error.InvalidAction: there is no such action.
        """
        if self._is_over:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() before step()")
        space = self.action_space
        if isinstance(space, gymnasium.spaces.Discrete) and not 0 <= int(action) < space.n:
            raise gymnasium.error.InvalidAction(f"the action must be one of 0 to {space.n - 1}: got {action}")
        observation = self._empty()
        step = self._env.step(action, observation)
        self._is_over = step.episode_over
        info = {"frames": step.frames} | ({"crashed": True} if step.crashed else {})
        return (
            observation,
            step.reward,
            step.terminated and not step.crashed,
            step.truncated or step.crashed,
            info,
        )

    def get_action_meanings(self) -> list[str]:
        """The name of each discrete action, or of each component of a continuous one."""
        return list(self._env.action_names)

    def render(self) -> Any:
        """The newest (H, W, 3) frame; None without `render_mode="rgb_array"`."""
        return self._frame

    def close(self) -> None:
        """Close the environment."""
        self._is_over = True
        self._env.close()

    def _empty(self) -> NDArray[Any]:
        return np.zeros(self._env.observation_shape, self._env.observation_dtype)

    def _keep(self, frame: NDArray[np.uint8]) -> None:
        self._frame = frame.copy()


def _bounds(env: Env) -> tuple[ArrayLike, ArrayLike]:
    return env.observation_bounds if isinstance(env, _Bounded) else (-np.inf, np.inf)
