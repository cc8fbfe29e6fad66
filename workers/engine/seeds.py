"""Randomness that can be told again: each world's k-th episode has its own, whatever happened before."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def episode_seed(run_seed: int, stream: int, k: int) -> int:
    """Seed below 2**32 of the k-th episode of a stream (an environment, or an evaluation)."""
    return int(np.random.SeedSequence((run_seed, stream, k)).generate_state(1)[0])


class EpisodeSeeds:
    """Counts the episodes each environment has begun and seeds the next."""

    begun: list[int]

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
    """State of a run's generator as plain values; its 128-bit integers as text."""
    state: dict[str, Any] = dict(rng.bit_generator.state)
    numbers = {name: str(value) for name, value in state["state"].items()}
    return state | {"state": numbers, "run_seed": run_seed}


def restore_rng(rng: np.random.Generator, state: dict[str, Any], run_seed: int) -> None:
    """Go on from what `rng_state` gave; a generator of a run with another seed (a fork) stays as it is."""
    kept = dict(state)
    if kept.pop("run_seed", run_seed) == run_seed:
        numbers = {name: int(value) for name, value in kept["state"].items()}
        rng.bit_generator.state = kept | {"state": numbers}
