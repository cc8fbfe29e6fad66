"""Replays: seed, actions, values and policies of an episode, from which it is simulated again."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.envs.base import Action
from workers.engine.files import replacing


class EpisodeRecorder:
    """Collects the current episode of one environment, decision by decision."""

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._rewards: list[float] = []
        self._values: list[float] = []
        self._policies: list[NDArray[np.float32]] = []
        self._lives: list[int] = []
        self.truncated = False
        """Whether the episode has ended at a limit, after which the agent expected further rewards."""

    def add(self, action: Action, reward: float, value: float, policy_A: NDArray[Any], lives: int) -> None:
        """Add a decision: action, reward, V(s) and pi(.|s) or Q(s, .) before it, lives after it."""
        self._actions.append(np.array(action))
        self._rewards.append(reward)
        self._values.append(value)
        self._policies.append(policy_A.astype(np.float32))
        self._lives.append(lives)

    def save(
        self,
        path: Path,
        *,
        seed: int,
        protocol: str | None,
        frames_per_step: int,
        action_names: tuple[str, ...],
    ) -> None:
        """Write the episode to `path` (.npz), whole or not at all.

        Args:
            path: the file.
            seed: the episode's seed.
            protocol: protocol of the evaluation that the episode was part of; None: a training episode.
            frames_per_step: emulator frames a decision.
            action_names: names of the A actions, or of the D numbers of one.
        """
        actions = np.asarray(self._actions)
        policies = np.asarray(self._policies, np.float32)
        # Numbers within ±1, such as probabilities, fit into half precision; action values may be too large.
        if np.abs(policies).max(initial=0.0) <= 1.0:
            policies = policies.astype(np.float16)
        with replacing(path) as partial:
            np.savez_compressed(
                partial,
                actions=actions.astype(np.int16 if actions.dtype.kind in "iu" else np.float32),
                rewards=np.asarray(self._rewards, np.float32),
                values=np.asarray(self._values, np.float32),
                policies=policies,
                lives=np.asarray(self._lives, np.int8),
                seed=np.int64(seed),
                protocol=np.str_(protocol or ""),
                frames_per_step=np.int64(frames_per_step),
                action_names=np.asarray(action_names),
                truncated=np.bool_(self.truncated),
            )
