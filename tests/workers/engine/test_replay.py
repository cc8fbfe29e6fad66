"""The replay memory against a list that keeps everything."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from workers.engine.replay import Batch, Chunk, ReplayShard, Shape, Trajectory

STACKED = Shape((2, 2, 4), "uint8", 4)
VECTOR = Shape((4,), "float32", 1)


class Decision(NamedTuple):
    """What an actor saw, did and saw next."""

    state: NDArray[Any]
    action: int
    reward: float
    terminal: bool
    next_state: NDArray[Any] | None


class Source:
    """An actor whose every frame is a number of its own."""

    def __init__(self, shape: Shape, trajectory: Trajectory, seed: int, first: int) -> None:
        self.shape = shape
        self.trajectory = trajectory
        self.rng = np.random.default_rng(seed)
        self.count = first
        self.truth: list[Decision] = []
        self._begin()

    def _frame(self) -> NDArray[Any]:
        self.count += 1
        if self.shape.stack == 1:
            return np.full(self.shape.frame, self.count, self.shape.dtype)
        return np.array([self.count], "<u4").view(np.uint8).reshape(self.shape.frame)

    def _see(self) -> NDArray[Any]:
        frame = self._frame()
        if self.shape.stack == 1:
            return frame
        self.pictures = [*self.pictures[1:], frame]
        return np.stack(self.pictures, -1)

    def _begin(self) -> None:
        self.trajectory.begin()
        self.pictures = [np.zeros(self.shape.frame, self.shape.dtype)] * 4
        self.state = self._see()

    def act(self) -> None:
        self.trajectory.see(self.state)
        action, reward = int(self.rng.integers(5)), float(np.float32(self.rng.normal()))
        draw = self.rng.random()
        before = self.state
        if draw < 0.04:  # the world broke: what would have followed is not known
            self._begin()
            return
        self.state = self._see()
        terminal = 0.04 <= draw < 0.2
        self.trajectory.decide(action, reward, terminal=terminal)
        self.truth.append(Decision(before, action, reward, terminal, None if terminal else self.state))
        if 0.16 <= draw < 0.3:  # over, or cut off; between 0.04 and 0.16 only a life is lost
            if not terminal:
                self.trajectory.see(self.state)
            self._begin()


def key(decision: Decision) -> tuple[Any, ...]:
    after = None if decision.next_state is None else decision.next_state.tobytes()
    return (decision.state.tobytes(), decision.action, decision.reward, decision.terminal, after)


def drawn(batch: Batch) -> list[tuple[Any, ...]]:
    return [
        key(
            Decision(
                np.ascontiguousarray(state),
                int(action),
                float(reward),
                bool(terminal),
                None if terminal else np.ascontiguousarray(next_state),
            )
        )
        for state, action, reward, terminal, next_state in zip(*batch, strict=True)
    ]


@pytest.mark.parametrize("shape", [STACKED, VECTOR])
@pytest.mark.parametrize("writers", [1, 3])
def test_draws_every_decision_it_holds_equally_often_and_nothing_else(shape: Shape, writers: int) -> None:
    rng = np.random.default_rng(5)
    shard = ReplayShard(shape, 100)
    sources = [
        Source(shape, Trajectory(shape, whole=writers > 1), seed, 10_000 * seed) for seed in range(writers)
    ]
    for k in range(60 // writers * 4):
        source = sources[k % writers]
        for _ in range(int(rng.integers(1, 9))):
            source.act()
        shard.add(source.trajectory.take())
    truth = {key(decision) for source in sources for decision in source.truth}
    counts: Counter[tuple[Any, ...]] = Counter()
    for _ in range(200):
        batch = shard.sample(64, rng)
        assert batch is not None
        counts.update(drawn(batch))
    assert set(counts) <= truth
    assert any(not k[3] for k in counts)
    assert any(k[3] for k in counts)
    # All that can be drawn: what is held, less what lost a frame of its state or waits for the next one.
    assert shard.decisions - 12 <= len(counts) <= shard.decisions
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_a_frame_is_stored_once() -> None:
    shard = ReplayShard(Shape((84, 84, 4), "uint8", 4), 1_000)
    trajectory = Trajectory(shard.shape, whole=False)
    trajectory.begin()
    for _ in range(100):
        trajectory.see(np.ones((84, 84, 4), np.uint8))
        trajectory.decide(0, 0.0, terminal=False)
        shard.add(trajectory.take())
    assert 100 * 84 * 84 < shard.bytes_filled < 101 * 84 * 84
    assert shard.fill == 0.1


def test_nothing_can_be_drawn_before_something_has_followed() -> None:
    shard = ReplayShard(VECTOR, 10)
    rng = np.random.default_rng(0)
    assert shard.sample(4, rng) is None
    trajectory = Trajectory(VECTOR, whole=False)
    trajectory.begin()
    trajectory.see(np.zeros(4, np.float32))
    trajectory.decide(1, 2.0, terminal=False)
    shard.add(trajectory.take())
    assert shard.decisions == 1
    assert shard.sample(4, rng) is None
    trajectory.see(np.ones(4, np.float32))
    shard.add(trajectory.take())
    batch = shard.sample(4, rng)
    assert batch is not None
    assert batch.reward_B.tolist() == [2.0] * 4


def test_what_is_kept_of_it_is_the_same_memory() -> None:
    source = Source(STACKED, Trajectory(STACKED, whole=False), 1, 0)
    shard = ReplayShard(STACKED, 50)
    for _ in range(70):
        source.act()
        shard.add(source.trajectory.take())
    again = ReplayShard(STACKED, 50)
    again.restore(shard.state())
    for _ in range(30):
        source.act()
        chunk: Chunk = source.trajectory.take()
        shard.add(chunk)
        again.add(chunk)
    assert again.decisions == shard.decisions
    mine, its = (one.sample(500, np.random.default_rng(2)) for one in (shard, again))
    assert mine is not None
    assert its is not None
    assert drawn(mine) == drawn(its)
