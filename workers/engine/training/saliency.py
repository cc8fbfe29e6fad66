"""Saliency of a recorded decision: how much the network's outputs change where its input is blurred.

Perturbation saliency of Greydanus et al. 2018, "Visualizing and Understanding Atari Agents", section 3. With
the observation I, its blurred copy A(I, sigma_A = 3), and a mask M(i, j), a Gaussian with sigma^2 = 25 and a
peak of 1 at row i and column j, the perturbed observation is

    Phi(i, j) = I (1 - M(i, j)) + A M(i, j)                                                          (eq. 1)

    S_pi(i, j) = 1/2 ||pi_u(I) - pi_u(Phi(i, j))||^2                                                 (eq. 2)
    S_V(i, j)  = 1/2 ||V(I) - V(Phi(i, j))||^2                                                       (eq. 3)

with pi_u the logits of the policy. S is computed at every fifth row and column, from the third on. For an
agent that learns Q, the Q of all actions take the place of the logits, and max Q that of V; for a continuous
action its mean.

Differences from the paper: its input is one frame, and here all stacked frames are blurred alike. The memory
of a recurrent agent is that of the undisturbed episode, as in the paper.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from backend.specs.saliency import STRIDE_PIXELS, SaliencyMap
from workers.engine.methods.base import Policy
from workers.engine.nn.policies import PolicyWithMemory, PolicyWithOutputs
from workers.engine.training.restore import environment_of_episode, restore

BLUR_PIXELS = 3.0
"""sigma_A, of the blurred copy."""
MASK_PIXELS = 5.0
"""sigma of the mask."""
Outputs = Callable[[NDArray[np.uint8]], tuple[NDArray[Any], NDArray[Any]]]
MAX_BATCH = 128
"""Observations that the network takes together."""


def saliency_of_decision(
    spec: RunSpec,
    replay: Path,
    policy: Policy,
    decision: int,
    *,
    starts: Path | None = None,
    states: Path | None = None,
) -> SaliencyMap:
    """The saliency map of a decision of a recorded episode.

    Args:
        spec: the run that recorded the episode.
        replay: the episode's .npz, written by `EpisodeRecorder.save`.
        policy: whose outputs are compared; its network takes the observations of the episode's environment.
        decision: number of the decision, from 0.
        starts: file of the start set of the episode's protocol; None if it has no set.
        states: file of the episode's emulator states, with which less of it is repeated, unless the policy
            has to read it.

    Raises:
        ReplayMismatchError: repeating the episode gave other rewards than the recorded ones.
        ValueError: the observations are no images, or the episode ends before the decision.
    """
    env, episode = environment_of_episode(spec, replay, starts)
    if len(env.observation_shape) != 3 or env.observation_dtype != np.uint8:
        raise ValueError("the observations are no images: there is nothing to blur")
    observation = np.empty(env.observation_shape, np.uint8)
    memory = None

    def read(t: int, earlier: NDArray[Any]) -> None:
        policy.act(earlier[None], np.array([0]))

    try:
        if isinstance(policy, PolicyWithMemory):
            restore(env, episode, decision, observation, watch=read)
        else:
            restore(env, episode, decision, observation, states=states)
    finally:
        env.close()
    if isinstance(policy, PolicyWithMemory):
        memory = policy.memory(0)
        policy.forget(0)

    assert isinstance(policy, PolicyWithOutputs)
    explained = policy

    def outputs(observation_N: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[Any]]:
        environment_N = np.arange(len(observation_N))
        if isinstance(explained, PolicyWithMemory):
            for i in environment_N.tolist():
                explained.remember(i, memory)
        return explained.outputs(observation_N, environment_N)

    rows, columns = centres(observation.shape[0]), centres(observation.shape[1])
    score_RC, score_value_RC = perturbation_saliency(observation, rows, columns, outputs)
    is_rgb = observation.shape[2] == 3
    newest = observation if is_rgb else observation[:, :, -1]
    return SaliencyMap(
        height=observation.shape[0],
        width=observation.shape[1],
        rows=rows,
        columns=columns,
        policy=score_RC.tolist(),
        value=score_value_RC.tolist(),
        frame=b64encode(np.ascontiguousarray(newest).tobytes()).decode(),
        channels=3 if is_rgb else 1,
    )


def centres(length: int) -> list[int]:
    """Every fifth row or column, from the third on."""
    return list(range(STRIDE_PIXELS // 2, length, STRIDE_PIXELS))


def perturbation_saliency(
    observation: NDArray[np.uint8], rows: Sequence[int], columns: Sequence[int], outputs: Outputs
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """S_pi and S_V at these rows and columns, (R, C) each.

    Args:
        observation: (H, W, C).
        rows: centres of the blurred regions.
        columns: likewise.
        outputs: the network's logits (N, A) and V (N,) of observations (N, H, W, C).
    """
    H, W, C = observation.shape
    image = observation.astype(np.float32)
    blurred = np.stack([cv2.GaussianBlur(image[:, :, c], (0, 0), BLUR_PIXELS) for c in range(C)], axis=-1)
    change = blurred - image
    # The mask of a row and a column is the product of two Gaussians.
    mask_RH = np.exp(-0.5 * ((np.arange(H) - np.array(rows)[:, None]) / MASK_PIXELS) ** 2)
    mask_CW = np.exp(-0.5 * ((np.arange(W) - np.array(columns)[:, None]) / MASK_PIXELS) ** 2)
    places = [(r, c) for r in range(len(rows)) for c in range(len(columns))]
    logits_1A, value_1 = outputs(observation[None])
    score_N, score_value_N = np.empty(len(places)), np.empty(len(places))
    for first in range(0, len(places), MAX_BATCH):
        r, c = np.array(places[first : first + MAX_BATCH]).T
        mask_NHW = (mask_RH[r][:, :, None] * mask_CW[c][:, None, :]).astype(np.float32)
        perturbed_NHWC = mask_NHW[..., None] * change
        perturbed_NHWC += image
        logits_NA, value_N = outputs(np.rint(perturbed_NHWC).astype(np.uint8))
        part = slice(first, first + len(r))
        score_N[part] = 0.5 * ((logits_NA - logits_1A).astype(np.float64) ** 2).sum(-1)
        score_value_N[part] = 0.5 * (value_N - value_1).astype(np.float64) ** 2
    shape = len(rows), len(columns)
    return score_N.reshape(shape), score_value_N.reshape(shape)
