"""Custom gymnasium environments of this host, from the file that `CALLBOARD_ENVIRONMENTS_FILE` names.

    python -m workers.engine.envs.custom Custom/A-v0 Custom/B-v0

tries these one after the other and prints a line of JSON for each: its id, and why it cannot be used or null.
It runs their code, so the worker calls it as a child process.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from backend.specs.environments.custom import (
    FILE_VARIABLE,
    CustomConfig,
    CustomEnvironmentEntry,
    CustomEnvironmentsError,
    read_custom_environments,
)
from workers.engine.envs.base import Action, Box, Crashes, EnvCrashedError, Step
from workers.engine.envs.gymnasium_env import GymnasiumEnv
from workers.engine.envs.images import SIZE
from workers.engine.envs.info import InfoTotals


def refusal(environment: str) -> str | None:
    """Why a custom environment of this host cannot be used; None if it can play and render."""
    try:
        env = CustomEnv(environment, CustomConfig())
        try:
            env.try_out()
        finally:
            env.close()
    except (CustomEnvironmentsError, TypeError) as error:
        return " ".join(str(error).split())
    except Exception as error:  # whatever its code raises
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None


def _entry(environment: str) -> CustomEnvironmentEntry:
    path = os.environ.get(FILE_VARIABLE)
    if path is None:
        raise CustomEnvironmentsError(
            f"{environment}: this host has no custom environments; {FILE_VARIABLE} must name the file of them"
        )
    entries = read_custom_environments(Path(path))
    folder = str(Path(path).resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # the last place: no module of Callboard's is hidden
    if environment not in entries:
        raise CustomEnvironmentsError(
            f"{environment}: not in {path}; add it there, or choose another environment"
        )
    return entries[environment]


class CustomEnv(GymnasiumEnv):
    """One custom environment. If its code raises, the episode is lost and the environment is rebuilt.

    Raises:
        CustomEnvironmentsError: this host has no such environment, or it contradicts its entry in the file.
        TypeError: its observation or action space is not supported.
    """

    def __init__(self, environment: str, config: CustomConfig) -> None:
        self._entry = _entry(environment)
        self._config = config
        self._crashes = Crashes()
        self._error: Exception | None = None
        super().__init__(self._create(), self._entry.action_names)
        self.info = InfoTotals()
        self._check()
        if self.observation_dtype == np.uint8:
            self.observation_shape = (SIZE, SIZE, self.observation_shape[2])

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Start the episode of this seed; if that raises, the episode is lost at its first step."""
        try:
            if self._error is not None:
                with suppress(Exception):
                    self._env.close()
                self._env = self._create()
            super().reset(seed, out)
            self._error = None
        except Exception as error:
            self._error = error
            out.fill(0)

    def step(self, action: Action, out: NDArray[Any]) -> Step:
        """Take one step.

        Raises:
            EnvCrashedError: its code keeps raising.
        """
        if self._error is None:
            try:
                step = super().step(action, out)
            except Exception as error:
                self._error = error
            else:
                if step.episode_over:
                    self._crashes.finished_episode()
                return step
        crashed = EnvCrashedError(f"{self._entry.id} crashed: {self._error!r}")
        crashed.__cause__ = self._error
        return self._crashes.lost_episode(crashed)

    def try_out(self) -> None:
        """Play and render one step; what its code raises is raised here.

        Raises:
            CustomEnvironmentsError: an observation or the frame cannot be used.
        """
        out = np.empty(self.observation_shape, self.observation_dtype)
        space = self.action_space
        super().reset(0, out)
        super().step(space.clip(np.zeros(space.shape, np.float32)) if isinstance(space, Box) else 0, out)
        frame: Any = self._env.render()
        shape = np.shape(frame)
        if len(shape) != 3 or shape[2] != 3:
            raise CustomEnvironmentsError(
                f"{self._entry.id}: render returned an array of shape {shape}; return (H, W, 3) RGB bytes"
            )

    def _create(self) -> gymnasium.Env[Any, Any]:
        create = load_env_creator(self._entry.entry_point)
        env: Any = create(**self._entry.kwargs, render_mode="rgb_array")
        limit = self._config.max_episode_agent_steps
        return env if limit is None else TimeLimit(env, limit)

    def _check(self) -> None:
        space, entry = self.action_space, self._entry
        continuous = isinstance(space, Box)
        observation = "pixels" if self.observation_dtype == np.uint8 else "vector"
        count = len(space.low) if isinstance(space, Box) else space.n
        if (entry.actions == "continuous") is not continuous:
            raise CustomEnvironmentsError(
                f"{entry.id}.actions: {entry.actions}, but the environment has {space}"
            )
        if len(entry.action_names) != count:
            raise CustomEnvironmentsError(
                f"{entry.id}.action_names: {len(entry.action_names)} names for {count} actions"
            )
        if entry.observation != observation:
            raise CustomEnvironmentsError(
                f"{entry.id}.observation: {entry.observation}, but the environment gives {observation}"
            )

    def _observe(self, observation: Any, out: NDArray[Any]) -> None:
        if out.dtype != np.uint8:
            self._check_finite(observation)
        elif observation.shape[:2] != (SIZE, SIZE):
            observation = cv2.resize(observation, (SIZE, SIZE), interpolation=cv2.INTER_AREA)
            observation = observation.reshape(out.shape)
        super()._observe(observation, out)

    def _check_finite(self, observation: Any) -> None:
        finite = np.isfinite(observation)
        if not finite.all():
            index = int(np.argmin(finite))
            value = np.asarray(observation).flat[index]
            raise CustomEnvironmentsError(
                f"{self._entry.id}: observation[{index}] is {value}; return finite numbers"
            )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        # An environment's code may print part of a line, and that of the next may end the process.
        sys.stdout.write(f"\n{json.dumps([name, refusal(name)])}\n")
        sys.stdout.flush()
