"""What processes send to replay shards in other processes; Ray's calls return immediately here."""

from types import SimpleNamespace

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
