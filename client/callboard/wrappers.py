"""A gymnasium wrapper that reports true episode returns: `callboard.RecordReturns`."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import gymnasium

from callboard.cleaning import as_number, shown
from callboard.external import ExternalRun


class RecordReturns(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Logs return and length of each finished episode to a run.

    Put it directly around the environment, below wrappers that clip or scale rewards, so that the returns are
    the true ones. Several environments may log to one run: `n_environments` of them step together.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], run: ExternalRun, *, n_environments: int = 1) -> None:
        """Wrap an environment.

        Args:
            env: the environment.
            run: the run to log to, in the same process.
            n_environments: how many environments with this wrapper step together: an agent step of this one
                counts for this many agent steps of the run.

        Raises:
            ValueError: `n_environments` is less than 1.
        """
        if type(n_environments) is not int or n_environments < 1:
            raise ValueError(f"n_environments: must be at least 1: got {shown(n_environments)}")
        super().__init__(env)
        self._run = run
        self._n_environments = n_environments
        self._agent_steps = run.agent_steps
        self._return = 0.0
        self._length = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; an episode that has not ended is not logged."""
        self._return, self._length = 0.0, 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment; log the episode if it has ended."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._agent_steps += self._n_environments
        number = as_number(reward).value
        self._return += math.nan if number is None else number
        self._length += 1
        if terminated or truncated:
            at = None if self._run.counts_iterations else self._agent_steps
            self._run.episode(self._return, self._length, agent_steps=at)
            self._return, self._length = 0.0, 0
        return observation, reward, terminated, truncated, info
