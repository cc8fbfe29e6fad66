"""A gymnasium wrapper that reports true episode returns: `callboard.RecordReturns`."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import gymnasium

from callboard.cleaning import as_number, shown
from callboard.external import ExternalRun
from callboard.tally import warn

_MAX_CUT = 3
"""Episodes that a reset cuts, one after the other, before that is said."""


class RecordReturns(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Logs return and length of each finished episode to a run.

    Put it directly around the environment, below wrappers that clip or scale rewards, so that the returns are
    the true ones. Several environments may log to one run: `n_environments` of them step together. Where a
    wrapper above it repeats actions, such as `AtariPreprocessing`, `frame_skip` says how often; actions that
    such a wrapper takes by itself, such as no-ops after a reset, count as well.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        run: ExternalRun,
        *,
        n_environments: int = 1,
        frame_skip: int = 1,
    ) -> None:
        """Wrap an environment.

        Args:
            env: the environment.
            run: the run to log to, in the same process.
            n_environments: how many environments with this wrapper step together: an agent step of this one
                counts for this many agent steps of the run.
            frame_skip: how many steps of this environment one agent step takes.

        Raises:
            ValueError: `n_environments` or `frame_skip` is less than 1.
        """
        for name, value in (("n_environments", n_environments), ("frame_skip", frame_skip)):
            if type(value) is not int or value < 1:
                raise ValueError(f"{name}: must be at least 1: got {shown(value)}")
        super().__init__(env)
        self._run = run
        self._n_environments = n_environments
        self._frame_skip = frame_skip
        self._agent_steps = run.agent_steps
        """Of the run, when the present episode began."""
        self._return = 0.0
        self._n_steps = 0
        self._n_cut = 0
        """Episodes since the last one that has ended which a reset has cut."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; an episode that has not ended is not logged.

        After three in a row, a warning says so: a wrapper above this one ends them, such as a time limit.
        """
        if self._n_steps:
            self._n_cut += 1
            if self._n_cut == _MAX_CUT:
                warn(
                    "callboard: %d episodes in a row were reset before they ended, and are not logged: put "
                    "RecordReturns around the wrapper that ends them, such as TimeLimit",
                    _MAX_CUT,
                )
        self._begin_episode()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment; log the episode if it has ended."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        number = as_number(reward).value
        self._return += math.nan if number is None else number
        self._n_steps += 1
        if terminated or truncated:
            self._n_cut = 0
            episode_return, length = self._return, self._begin_episode()
            # A vector environment may reset this one instead of stepping it, which is not counted here.
            self._agent_steps = max(self._agent_steps, self._run.agent_steps)
            at = None if self._run.counts_iterations else self._agent_steps
            self._run.episode(episode_return, length, agent_steps=at)
        return observation, reward, terminated, truncated, info

    def _begin_episode(self) -> int:
        """Count the steps so far; returns the agent steps of the episode that they were."""
        length = -(-self._n_steps // self._frame_skip)
        self._agent_steps += length * self._n_environments
        self._return, self._n_steps = 0.0, 0
        return length
