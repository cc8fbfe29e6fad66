"""Random play before training, whose mean image centres observations; see `workers.engine.nn.centre`.

`RANDOM_DECISIONS` uniformly random decisions are taken, equally many in each of `RANDOM_ENVIRONMENTS`
environments like those of training, by random numbers of the run's seed. Mean and deviation are of the states
in which decisions are taken. All sums are whole numbers, so that their order changes nothing.

A run does this once, before its first agent step. Nothing is learned from it but the scale of observations,
so its decisions are not agent steps: they advance neither the run's limit nor schedules or target networks.
Their emulator frames and their time are counted as the run's.
"""

import math
import os
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from backend.specs.algorithms.memory import RANDOM_DECISIONS, RANDOM_ENVIRONMENTS
from backend.specs.run import RunSpec
from workers.engine.envs import Box
from workers.engine.envs.base import ActionSpace
from workers.engine.envs.vector import VectorEnv
from workers.engine.nn.centre import Centre
from workers.engine.nn.seeds import RANDOM_PLAY_STREAM, EpisodeSeeds
from workers.engine.processes.phases import enter_phase


class RandomPlay(NamedTuple):
    """What a run's random play took, and the deviation of its pixels in grey levels; zeros without one."""

    frames: int = 0
    time_s: float = 0.0
    deviation: float = 0.0


class Pixels:
    """Sums over some states, for the mean of each pixel and the deviation of all pixels from their means."""

    def __init__(self, observation_shape: tuple[int, ...]) -> None:
        self._shape = observation_shape
        n_pixels = math.prod(observation_shape)
        self._n = 0
        self._sum_P, self._squares_P = np.zeros(n_pixels, np.int64), np.zeros(n_pixels, np.int64)

    def add(self, observation_B: NDArray[np.uint8]) -> None:
        """Add states (B, H, W, C); B is at most 256."""
        # float32 holds every whole number below 2^24, which is above 256 x 255^2.
        x_BP = observation_B.reshape(len(observation_B), -1).astype(np.float32)
        self._n += len(x_BP)
        self._sum_P += x_BP.sum(0).astype(np.int64)
        self._squares_P += np.einsum("bp,bp->p", x_BP, x_BP).astype(np.int64)

    def mean_and_deviation(self) -> tuple[NDArray[np.float64], float]:
        """The mean image (H, W, C) and the deviation, in grey levels."""
        n, sum_P = self._n, self._sum_P
        squared = int((n * self._squares_P - sum_P**2).sum())
        return (sum_P / n).reshape(self._shape), math.sqrt(squared / (n**2 * len(sum_P)))


def centre(network: nn.Module, spec: RunSpec, *, restored: bool) -> RandomPlay:
    """Play randomly, and set the mean image and the deviation of every layer of a network that centres.

    Args:
        network: the network whose parameters theta is; nothing happens if no layer of it centres.
        spec: the run.
        restored: whether theta will be a checkpoint's, which holds both.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, Centre)]
    if restored or not layers:
        return RandomPlay()
    started = time.monotonic()
    enter_phase(f"playing {RANDOM_DECISIONS:,} random decisions")
    pixels, frames = play_randomly(spec)
    mean_HWC, deviation = pixels.mean_and_deviation()
    for layer in layers:
        layer.set(mean_HWC, deviation)
    return RandomPlay(frames, time.monotonic() - started, deviation)


def play_randomly(spec: RunSpec) -> tuple[Pixels, int]:
    """The pixels of a run's random play, and its emulator frames."""
    B = RANDOM_ENVIRONMENTS
    rng = np.random.default_rng(np.random.SeedSequence((spec.seed, RANDOM_PLAY_STREAM)))
    seeds = EpisodeSeeds(spec.seed, range(RANDOM_PLAY_STREAM, RANDOM_PLAY_STREAM + B))
    processes = min(B, spec.config.env_processes, len(os.sched_getaffinity(0)))
    env = VectorEnv(
        spec,
        environments=B,
        processes=processes if processes > 1 else 0,
        slots=1,
        next_seed=seeds.next,
    )
    pixels, frames = Pixels(env.observation_shape), 0
    try:
        env.reset()
        for _ in range(RANDOM_DECISIONS // B):
            pixels.add(env.shared.observation_SB[0])
            env.step(random_actions(env.action_space, B, rng), 0)
            frames += int(env.shared.frames_B.sum())
    finally:
        env.close()
    return pixels, frames


def random_actions(space: ActionSpace, B: int, rng: np.random.Generator) -> NDArray[np.generic]:
    """Uniformly random actions (B,), or (B, D) in a `Box`."""
    if isinstance(space, Box):
        return rng.uniform(space.low, space.high, (B, *space.shape)).astype(np.float32)
    return rng.integers(space.n, size=B)
