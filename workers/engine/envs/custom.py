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
from backend.specs.environments.installed import absence, installed_environments
from workers.engine.envs.base import Action, Crashes, EnvCrashedError, Step
from workers.engine.envs.checks import CheckedEnv, GymEnv, check_environment
from workers.engine.envs.gymnasium_env import GymnasiumEnv
from workers.engine.envs.images import SIZE
from workers.engine.envs.info import InfoTotals

_LOADED: dict[str, CustomEnvironmentEntry] = {}
"""Environments of distributions by id: to look through all distributions takes a tenth of a second."""


def refusal(environment: str) -> str | None:
    """Why a custom environment of this host cannot be used; None if it can play and render."""
    try:
        entry = _entry(environment)
        check_environment(entry, lambda: _create(entry, None))
    except CustomEnvironmentsError as error:
        return " ".join(str(error).split())
    except Exception as error:  # whatever its code raises
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None


def _entry(environment: str) -> CustomEnvironmentEntry:
    path = os.environ.get(FILE_VARIABLE)
    file = None if path is None else Path(path)
    entries = {} if file is None else read_custom_environments(file)
    if file is None or environment not in entries:
        if environment not in _LOADED:
            _LOADED[environment] = _installed(environment, file)
        return _LOADED[environment]
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # the last place: no module of Callboard's is hidden
    return entries[environment]


def _installed(environment: str, file: Path | None) -> CustomEnvironmentEntry:
    installed = installed_environments(file)
    if environment not in installed.values:
        raise CustomEnvironmentsError(absence(environment, file, installed))
    return installed.values[environment]


def _create(entry: CustomEnvironmentEntry, max_episode_agent_steps: int | None) -> GymEnv:
    create = load_env_creator(entry.entry_point)
    env: Any = create(**entry.kwargs, render_mode="rgb_array")
    return env if max_episode_agent_steps is None else TimeLimit(env, max_episode_agent_steps)


class CustomEnv(GymnasiumEnv):
    """One custom environment. If its code raises, or returns what `CheckedEnv` refuses, the episode is lost
    and the environment is rebuilt.

    Raises:
        CustomEnvironmentsError: this host has no such environment, its spaces are not supported, or it
            contradicts its entry in the file.
    """

    def __init__(self, environment: str, config: CustomConfig) -> None:
        self._entry = _entry(environment)
        self._config = config
        self._crashes = Crashes()
        self._error: Exception | None = None
        super().__init__(self._create(), self._entry.action_names)
        self.info = InfoTotals()
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
        is_named = isinstance(self._error, CustomEnvironmentsError)
        crashed = EnvCrashedError(
            str(self._error) if is_named else f"{self._entry.id} crashed: {self._error!r}"
        )
        crashed.__cause__ = self._error
        return self._crashes.lost_episode(crashed)

    def _create(self) -> CheckedEnv:
        return CheckedEnv(self._entry, _create(self._entry, self._config.max_episode_agent_steps))

    def _observe(self, observation: Any, out: NDArray[Any]) -> None:
        if out.dtype == np.uint8 and observation.shape[:2] != (SIZE, SIZE):
            # OpenCV reduces at most four channels at a time.
            parts = [np.ascontiguousarray(observation[..., c : c + 4]) for c in range(0, out.shape[2], 4)]
            parts = [cv2.resize(part, (SIZE, SIZE), interpolation=cv2.INTER_AREA) for part in parts]
            observation = np.concatenate([part.reshape(SIZE, SIZE, -1) for part in parts], axis=2)
        super()._observe(observation, out)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        # An environment's code may print part of a line, and that of the next may end the process.
        sys.stdout.write(f"\n{json.dumps([name, refusal(name)])}\n")
        sys.stdout.flush()
