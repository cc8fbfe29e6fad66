"""What asynchronous actors share: the optimizer's statistics before the first update and after it."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from backend.specs.algorithms.a3c import A3CConfig
from workers.engine.methods.asynchronous.memory import Memory, Vectors

P = 6


@pytest.fixture
def memory() -> Iterator[Memory]:
    memory = Memory(P)
    yield memory
    memory.close()


def config(optimizer: str, initial_g: float = 1.0, n_actors: int = 2) -> A3CConfig:
    return A3CConfig.model_validate(
        {"optimizer": optimizer, "rmsprop_initial_g": initial_g, "n_actors": n_actors, "rmsprop_eps": 0.1}
    )


@pytest.mark.parametrize("initial_g", [0.0, 1.0])
def test_actors_share_an_accumulator_that_starts_at_its_initial_value(
    memory: Memory, initial_g: float
) -> None:
    """Mnih et al. 2016, equation 1, twice: by one actor, then by another over the same g."""
    settings = config("shared_rmsprop", initial_g)
    vectors = Vectors(memory)
    vectors.initialise(settings)
    theta, g = np.zeros(P), np.full(P, initial_g)
    for actor in range(2):
        dtheta = np.linspace(-1, 2, P) * (1 + actor)
        # As in an actor's process, which has views of its own.
        Vectors(memory).optimizer(settings, actor).step(torch.from_numpy(dtheta.astype(np.float32)), 0.01)
        g = 0.99 * g + 0.01 * dtheta**2
        theta = theta - 0.01 * dtheta / np.sqrt(g + 0.1)
    np.testing.assert_allclose(vectors.theta.numpy(), theta, rtol=0, atol=1e-6)


def test_each_actor_has_its_own_accumulator_with_rmsprop(memory: Memory) -> None:
    settings = config("rmsprop")
    vectors = Vectors(memory)
    vectors.initialise(settings)
    theta, dtheta = np.zeros(P), np.linspace(-1, 2, P)
    for actor in range(2):
        vectors.optimizer(settings, actor).step(torch.from_numpy(dtheta.astype(np.float32)), 0.01)
        theta = theta - 0.01 * dtheta / np.sqrt(0.99 + 0.01 * dtheta**2 + 0.1)
    np.testing.assert_allclose(vectors.theta.numpy(), theta, rtol=0, atol=1e-6)


def test_additional_actor_starts_at_the_initial_value_and_others_keep_theirs(memory: Memory) -> None:
    vectors = Vectors(memory)
    vectors.initialise(config("rmsprop"))
    vectors.optimizer(config("rmsprop"), 0).step(torch.zeros(P), 0.01)
    more = config("rmsprop", n_actors=3)
    vectors.initialise(more)
    kept = vectors.statistics(more)
    for actor, g in enumerate((0.99, 1.0, 1.0)):
        np.testing.assert_allclose(kept[f"rmsprop_{actor}"].numpy(), g, rtol=1e-6)


@pytest.mark.parametrize("optimizer", ["momentum_sgd", "shared_adam"])
def test_initial_value_concerns_rmsprop_only(memory: Memory, optimizer: str) -> None:
    vectors = Vectors(memory)
    vectors.initialise(config(optimizer))
    assert not any(values.any() for values in vectors.statistics(config(optimizer)).values())
