"""What a replay keeps of an episode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.specs.run import parse_run_spec
from tests.support.waiting import Patience
from workers.engine.methods.base import EpisodeEnd
from workers.engine.methods.episode_runner import EpisodeRunner
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.methods.paac.paac import METHOD
from workers.engine.methods.recording import EpisodeRecorder

BREAKOUT: dict[str, Any] = {"environment": "ALE/Breakout-v5", "seed": 3, "stop": {"agent_steps": 10_000}}


@pytest.mark.parametrize(
    ("thought", "kept"),
    [([0.25, 0.75], np.float16), ([70_000.5, -0.1], np.float32)],
    ids=["probabilities", "action values"],
)
def test_recording_stores_probabilities_as_float16_and_large_values_as_float32(
    tmp_path: Path, thought: list[float], kept: type
) -> None:
    recorder = EpisodeRecorder()
    for reward in (0.0, 1.0):
        recorder.add(1, reward, max(thought), np.array(thought, np.float32), lives=3)
    path = tmp_path / "replay.npz"
    recorder.save(path, seed=7, protocol="plain", frames_per_step=4, action_names=("NOOP", "FIRE"))
    with np.load(path) as replay:
        assert (int(replay["seed"]), str(replay["protocol"]), int(replay["frames_per_step"])) == (
            7,
            "plain",
            4,
        )
        assert replay["action_names"].tolist() == ["NOOP", "FIRE"]
        assert replay["policies"].dtype == kept
        np.testing.assert_array_equal(replay["policies"], np.array([thought, thought], np.float32))
        np.testing.assert_array_equal(replay["rewards"], [0.0, 1.0])


def _lives(episode: EpisodeEnd, folder: Path) -> list[int]:
    """Lives after each decision, as the episode's replay has them."""
    assert episode.recording is not None
    path = folder / "replay.npz"
    episode.recording.save(path, seed=3, protocol=None, frames_per_step=4, action_names=())
    with np.load(path) as replay:
        lives: list[int] = replay["lives"].tolist()
    return lives


def test_actor_records_the_lives_after_each_decision(tmp_path: Path) -> None:
    runner = EpisodeRunner(parse_run_spec(BREAKOUT | {"algorithm": "dqn"}), 0, recorded=True)
    runner.reset()
    rng, lives = np.random.default_rng(3), []
    patience = Patience()
    while patience.lasts() and runner.finished is None:
        runner.step(int(rng.integers(4)), 0.0, np.zeros(4, np.float32))
        lives.append(runner.env.lives())
    assert runner.finished is not None
    lives[-1] = 0
    assert set(lives) == {0, 1, 2, 3, 4, 5}
    assert _lives(runner.finished, tmp_path) == lives
    runner.close()


def test_rollout_worker_records_the_lives_after_each_decision(tmp_path: Path) -> None:
    """Random actions lose one of five lives after another."""
    config = {"n_e": 1, "n_w": 1, "t_max": 20, "evaluation_episodes": 0}
    learner = PaacLearner(
        parse_run_spec(BREAKOUT | {"algorithm": "paac", "config": config}), METHOD.factories
    )
    episodes: list[EpisodeEnd] = []
    patience = Patience()
    while patience.lasts() and not episodes:
        episodes = learner.advance(0.0, watched=False).episodes
    lives = _lives(episodes[0], tmp_path)
    learner.close()
    assert len(lives) == episodes[0].length_steps
    assert sorted(lives, reverse=True) == lives
    assert set(lives[:-1]) == {1, 2, 3, 4, 5}
    assert lives[-1] == 0
