"""Seeds: the k-th episode of each environment has its own, which depends on nothing else."""

from collections.abc import Sequence
from typing import Any

import numpy as np

ACTION_STREAM = 2**30
"""Random stream of the actions of actor 0; the streams below are those of episodes."""
MINIBATCH_STREAM = ACTION_STREAM + 2**29
"""Random stream of the minibatches of replay memory 0."""
REPLAY_CHOICE_STREAM = MINIBATCH_STREAM + 2**28
"""Random stream of the replay shards that Gorila's learner 0 asks for minibatches."""
ADJUSTMENT_STREAM = REPLAY_CHOICE_STREAM + 2**27
"""Random stream of GA3C's dynamic adjustment."""

RANDOM_PLAY_STREAM = ADJUSTMENT_STREAM + 2**26
"""Random stream of the random play before training: its actions, and its first environment's episodes."""


def episode_seed(run_seed: int, stream: int, k: int) -> int:
    """Seed below 2**32 of the k-th episode of a random stream (an environment, or an evaluation)."""
    return int(np.random.SeedSequence((run_seed, stream, k)).generate_state(1)[0])


class EpisodeSeeds:
    """Seeds of the next episodes of several environments."""

    begun: list[int]
    """Episodes begun, by environment."""

    def __init__(self, run_seed: int, streams: Sequence[int]) -> None:
        self._run_seed = run_seed
        self._streams = streams
        self.begun = [0] * len(streams)

    def next(self, environment: int) -> int:
        """Seed of the next episode of the environment with this index."""
        k = self.begun[environment]
        self.begun[environment] += 1
        return episode_seed(self._run_seed, self._streams[environment], k)


def rng_state(rng: np.random.Generator, run_seed: int) -> dict[str, Any]:
    """The state of a run's generator as plain values, 128-bit integers as text."""
    state: dict[str, Any] = dict(rng.bit_generator.state)
    numbers = {name: str(value) for name, value in state["state"].items()}
    return state | {"state": numbers, "run_seed": run_seed}


def restore_rng(rng: np.random.Generator, state: dict[str, Any], run_seed: int) -> None:
    """Continue from `rng_state`; the generator of a run with another seed (a fork) stays as it is."""
    kept = dict(state)
    if kept.pop("run_seed") == run_seed:
        numbers = {name: int(value) for name, value in kept["state"].items()}
        rng.bit_generator.state = kept | {"state": numbers}
