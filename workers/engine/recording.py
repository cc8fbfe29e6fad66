"""Replays of episodes: seed, actions and what the agent thought; the world itself can be played again."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class EpisodeRecorder:
    """Collects one environment's present episode, decision by decision."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin an episode."""
        self._actions: list[int] = []
        self._rewards: list[float] = []
        self._values: list[float] = []
        self._policies: list[NDArray[np.float16]] = []
        self._lives: list[int] = []

    def add(self, action: int, reward: float, value: float, policy_A: NDArray[Any], lives: int) -> None:
        """Add a decision: what was done, what it earned, V(s) and pi(.|s) before it, lives after it."""
        self._actions.append(action)
        self._rewards.append(reward)
        self._values.append(value)
        self._policies.append(policy_A.astype(np.float16))
        self._lives.append(lives)

    def save(
        self, path: Path, *, seed: int, evaluation: bool, frames_per_step: int, action_names: tuple[str, ...]
    ) -> None:
        """Write the episode to `path` (.npz), whole or not at all.

        Args:
            path: the file.
            seed: the episode's.
            evaluation: whether it was played under `evaluation_config`.
            frames_per_step: emulator frames a decision.
            action_names: (A,).
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npz")
        with partial.open("wb") as file:
            np.savez_compressed(
                file,
                actions=np.asarray(self._actions, np.int16),
                rewards=np.asarray(self._rewards, np.float32),
                values=np.asarray(self._values, np.float32),
                policies=np.asarray(self._policies, np.float16),
                lives=np.asarray(self._lives, np.int8),
                seed=np.int64(seed),
                evaluation=np.bool_(evaluation),
                frames_per_step=np.int64(frames_per_step),
                action_names=np.asarray(action_names),
            )
        os.replace(partial, path)
