"""What processes send to replay shards in other processes; Ray's calls return immediately here."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workers.engine.nn.replay import FrameShape, ReplayChunk, Trajectory


def _chunk() -> ReplayChunk:
    trajectory = Trajectory(FrameShape((4,), "float32", 1), independent_chunks=True)
    trajectory.begin_episode()
    return trajectory.take_chunk()


@pytest.mark.parametrize(("home", "expected"), [(None, [0, 1, 2, 0, 1, 2, 0]), (2, [2] * 7)])
def test_chunks_are_sent_to_all_shards_in_turn_or_to_the_home_shard(
    monkeypatch: pytest.MonkeyPatch, home: int | None, expected: list[int]
) -> None:
    from workers.engine.methods.gorila.remote import RemoteReplay  # imports Ray

    monkeypatch.setattr("ray.get", lambda ref, timeout: ref)
    sent: list[int] = []

    def add(number: int, chunk: ReplayChunk) -> bool:
        sent.append(number)
        return True

    shards = [(SimpleNamespace(add=SimpleNamespace(remote=add)), k) for k in range(3)]
    replay = RemoteReplay(shards, home=home, rng=np.random.default_rng(1))
    for _ in expected:
        replay.add(_chunk())
    assert sent == expected
    assert replay.lost_chunks == 0


def test_minibatch_is_the_home_shards_or_while_it_has_none_another_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workers.engine.methods.gorila.remote import TRIES, RemoteReplay  # imports Ray

    monkeypatch.setattr("ray.get", lambda ref, timeout: ref)
    asked: list[int] = []
    filled = {0, 2}

    def sample(number: int, B: int, min_transitions: int) -> str | None:
        assert (B, min_transitions) == (32, 50)
        asked.append(number)
        return f"of shard {number}" if number in filled else None

    shards = [(SimpleNamespace(sample=SimpleNamespace(remote=sample)), k) for k in range(3)]
    replay: Any = RemoteReplay(shards, home=2, rng=np.random.default_rng(1))
    assert [replay.sample(32, 50) for _ in range(2)] == ["of shard 2"] * 2
    assert asked == [2] * 3, "the next is requested when one is returned"
    filled.clear()
    assert replay.sample(32, 50) == "of shard 2", "it was requested before"
    assert replay.sample(32, 50) is None
    assert len(asked) == 4 + TRIES
    filled.add(0)
    minibatches = [replay.sample(32, 50) for _ in range(30)]
    assert set(minibatches) == {"of shard 0", None}
    assert replay.detours == minibatches.count("of shard 0")
