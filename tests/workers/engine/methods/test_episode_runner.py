"""One actor's environment, left and continued in the middle of an episode."""

from pathlib import Path

import numpy as np
import pytest

from tests.workers.engine.methods.asynchronous.played import spec_of
from workers.engine.methods.episode_runner import EpisodeRunner
from workers.engine.training import checkpoint


@pytest.mark.parametrize("environment", ["CartPole-v1", "Pendulum-v1"])
def test_episode_is_continued_from_a_checkpoint(environment: str, tmp_path: Path) -> None:
    spec = spec_of("a3c", environment)
    first, again = (EpisodeRunner(spec, 0, recorded=False) for _ in range(2))
    rng = np.random.default_rng(0)

    def action() -> object:
        return rng.uniform(-2, 2, 1).astype(np.float32) if environment == "Pendulum-v1" else 1

    first.reset()
    for _ in range(3):
        first.step(action(), 0.0, np.zeros(1))
    checkpoint.save(tmp_path / "kept.pt", {"learner": {"play": first.state()}})
    assert again.restore(checkpoint.load(tmp_path / "kept.pt")["learner"]["play"])
    assert np.array_equal(again.observation, first.observation)
    assert again.state() == first.state()
    later = action()
    assert again.step(later, 0.0, np.zeros(1)).reward == first.step(later, 0.0, np.zeros(1)).reward
    for runner in (first, again):
        runner.close()
