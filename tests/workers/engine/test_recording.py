"""What a replay keeps of an episode."""

from pathlib import Path

import numpy as np
import pytest

from workers.engine.recording import EpisodeRecorder


@pytest.mark.parametrize(
    ("thought", "kept"),
    [([0.25, 0.75], np.float16), ([70_000.5, -0.1], np.float32)],
    ids=["probabilities", "action values"],
)
def test_probabilities_take_half_the_room_and_large_values_keep_theirs(
    tmp_path: Path, thought: list[float], kept: type
) -> None:
    recorder = EpisodeRecorder()
    for reward in (0.0, 1.0):
        recorder.add(1, reward, max(thought), np.array(thought, np.float32), lives=3)
    path = tmp_path / "replay.npz"
    recorder.save(path, seed=7, evaluation=False, frames_per_step=4, action_names=("NOOP", "FIRE"))
    with np.load(path) as replay:
        assert replay["policies"].dtype == kept
        np.testing.assert_array_equal(replay["policies"], np.array([thought, thought], np.float32))
        np.testing.assert_array_equal(replay["rewards"], [0.0, 1.0])
