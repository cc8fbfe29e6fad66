"""A host's own gymnasium environments, from the file that `CALLBOARD_ENVIRONMENTS_FILE` names."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from backend.specs.environments.own import FILE_VARIABLE, OwnConfig, OwnEntry, OwnWorldsError, read_own
from workers.engine.envs.base import Action, Box, Crashes, Step, WorldCrashedError
from workers.engine.envs.gymnasium_world import GymnasiumWorld

SIZE = 84


def _entry(environment: str) -> OwnEntry:
    path = os.environ.get(FILE_VARIABLE)
    if path is None:
        raise OwnWorldsError(f"{environment}: this host has no worlds of its own; {FILE_VARIABLE} names none")
    entries = read_own(Path(path))
    if environment not in entries:
        raise OwnWorldsError(f"{environment}: not in {path}")
    return entries[environment]


class OwnGymnasiumWorld(GymnasiumWorld):
    """One environment of the host's owner; where its code breaks, the episode is lost and it is made anew.

    Raises:
        OwnWorldsError: this host has no such world, or it is not what the file says of it.
        TypeError: no agent can see it or act in it.
    """

    def __init__(self, environment: str, config: OwnConfig) -> None:
        self._entry = _entry(environment)
        self._config = config
        self._crashes = Crashes()
        self._error: Exception | None = None
        super().__init__(self._make(), self._entry.action_names)
        self._check()
        if self.observation_dtype == np.uint8:
            self.observation_shape = (SIZE, SIZE, self.observation_shape[2])

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Begin the episode of this seed; where that breaks, the episode is lost at its first step."""
        try:
            if self._error is not None:
                with suppress(Exception):
                    self._env.close()
                self._env = self._make()
            super().reset(seed, out)
            self._error = None
        except Exception as error:
            self._error = error
            out.fill(0)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Take one step.

        Raises:
            WorldCrashedError: its code breaks again and again.
        """
        if self._error is None:
            try:
                step = super().step(action, out)
            except Exception as error:
                self._error = error
            else:
                if step.ended:
                    self._crashes.finished_episode()
                return step
        crashed = WorldCrashedError(f"{self._entry.id} broke: {self._error!r}")
        crashed.__cause__ = self._error
        return self._crashes.lost_episode(crashed)

    def _make(self) -> gymnasium.Env[Any, Any]:
        create = load_env_creator(self._entry.entry_point)
        env: Any = create(**self._entry.kwargs, render_mode="rgb_array")
        longest = self._config.max_episode_agent_steps
        return env if longest is None else TimeLimit(env, longest)

    def _check(self) -> None:
        space, told = self.action_space, self._entry
        continuous = isinstance(space, Box)
        seen = "pixels" if self.observation_dtype == np.uint8 else "vector"
        count = len(space.low) if isinstance(space, Box) else space.n
        if (told.actions == "continuous") is not continuous:
            raise OwnWorldsError(f"{told.id}.actions: {told.actions}, but the environment has {space}")
        if len(told.action_names) != count:
            raise OwnWorldsError(f"{told.id}.action_names: {len(told.action_names)} names of {count} actions")
        if told.observation != seen:
            raise OwnWorldsError(
                f"{told.id}.observation: {told.observation}, but the environment gives {seen}"
            )

    def _observe(self, observation: Any, out: NDArray[Any]) -> None:
        if out.dtype == np.uint8 and observation.shape[:2] != (SIZE, SIZE):
            small = cv2.resize(observation, (SIZE, SIZE), interpolation=cv2.INTER_AREA)
            np.copyto(out, small.reshape(out.shape))
        else:
            super()._observe(observation, out)
