"""Saliency maps, against a loop over the places in NumPy."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.workers.engine.training.recorded_episodes import SEED, policies_of, record, spec_of
from workers.engine.envs import make_env
from workers.engine.nn.policies import PolicyWithMemory, PolicyWithOutputs
from workers.engine.training.saliency import perturbation_saliency, saliency_of_decision

RADIUS = 12
"""Of the blur's kernel: four times its standard deviation."""


def _blur(image_HW: NDArray[Any]) -> NDArray[np.float64]:
    """A Gaussian of standard deviation 3, over mirrored edges."""
    kernel = np.exp(-0.5 * (np.arange(-RADIUS, RADIUS + 1) / 3) ** 2)
    kernel /= kernel.sum()
    H, W = image_HW.shape
    wide = np.pad(image_HW.astype(np.float64), RADIUS, mode="reflect")
    out = np.zeros((H, W))
    for i in range(H):
        for j in range(W):
            patch = wide[i : i + 2 * RADIUS + 1, j : j + 2 * RADIUS + 1]
            out[i, j] = kernel @ patch @ kernel
    return out


def _slow(
    observation: NDArray[np.uint8], rows: list[int], columns: list[int], outputs: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Equations 1 to 3, place by place."""
    H, W, C = observation.shape
    blurred = np.stack([_blur(observation[:, :, c]) for c in range(C)], axis=-1)
    logits, value = outputs(observation[None])
    score, score_value = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for r, row in enumerate(rows):
        for c, column in enumerate(columns):
            perturbed = np.empty(observation.shape, np.uint8)
            for i in range(H):
                for j in range(W):
                    mask = np.exp(-((i - row) ** 2 + (j - column) ** 2) / (2 * 25))
                    mixed = observation[i, j] * (1 - mask) + blurred[i, j] * mask
                    perturbed[i, j] = np.rint(mixed)
            changed_logits, changed_value = outputs(perturbed[None])
            score[r, c] = 0.5 * ((changed_logits - logits).astype(np.float64) ** 2).sum()
            score_value[r, c] = 0.5 * float(changed_value[0] - value[0]) ** 2
    return score, score_value


@pytest.mark.parametrize(
    ("algorithm", "config"),
    [("paac", {"network": "compact"}), ("one_step_q", {"network": "compact", "n_actors": 1})],
)
def test_map_is_that_of_a_loop_over_the_places(algorithm: str, config: dict[str, Any]) -> None:
    spec = spec_of(algorithm, "Catch-v0", config)
    [policy] = policies_of(spec, [0])
    assert isinstance(policy, PolicyWithOutputs)
    rng = np.random.default_rng(0)
    observation = rng.integers(0, 256, (84, 84, 1), dtype=np.uint8)
    rows, columns = [2, 37, 82], [7, 52]

    def outputs(observation_N: NDArray[np.uint8]) -> Any:
        return policy.outputs(observation_N, np.arange(len(observation_N)))

    fast = perturbation_saliency(observation, rows, columns, outputs)
    slow = _slow(observation, rows, columns, outputs)
    for quick, wanted in zip(fast, slow, strict=True):
        assert wanted.max() > 0
        np.testing.assert_allclose(quick, wanted, rtol=2e-2, atol=1e-4 * wanted.max())


def test_map_of_a_decision_has_its_frame_and_the_agents_memory(tmp_path: Path) -> None:
    spec = spec_of("a3c", "Catch-v0", {"network": "compact", "recurrent": True, "n_actors": 1})
    file = tmp_path / "r.npz"
    actions = record(spec, file, 6, lambda t: t % 3)
    [policy] = policies_of(spec, [0])
    saliency = saliency_of_decision(spec, file, policy, 4)
    assert (saliency.rows, saliency.columns) == (list(range(2, 84, 5)), list(range(2, 84, 5)))

    [alone] = policies_of(spec, [0])
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(SEED, observation)
    for action in actions[:4]:
        alone.act(observation[None], np.array([0]))
        env.step(action, observation)
    frame = np.frombuffer(base64.b64decode(saliency.frame), np.uint8).reshape(84, 84)
    np.testing.assert_array_equal(frame, observation[:, :, 0])
    assert isinstance(alone, PolicyWithMemory)
    assert isinstance(alone, PolicyWithOutputs)
    explained, memory = alone, alone.memory(0)

    def outputs(observation_N: NDArray[np.uint8]) -> Any:
        for i in range(len(observation_N)):
            alone.remember(i, memory)
        return explained.outputs(observation_N, np.arange(len(observation_N)))

    score, score_value = perturbation_saliency(observation, saliency.rows, saliency.columns, outputs)
    np.testing.assert_array_equal(saliency.policy, score)
    np.testing.assert_array_equal(saliency.value, score_value)
    assert score.max() > 0
    at_paddle = score[-1].max()
    assert at_paddle > 100 * max(score[0, 0], 1e-12) or at_paddle == score.max(), "what is black stays"


def test_map_of_a_vector_is_refused(tmp_path: Path) -> None:
    spec = spec_of("paac", "CartPole-v1", {"network": "mlp"})
    file = tmp_path / "r.npz"
    record(spec, file, 3, lambda t: 0)
    [policy] = policies_of(spec, [0])
    with pytest.raises(ValueError, match="no images"):
        saliency_of_decision(spec, file, policy, 1)
