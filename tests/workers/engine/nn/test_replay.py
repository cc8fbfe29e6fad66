"""The replay memory against a list of all transitions."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from workers.engine.nn.replay import Batch, FrameShape, ReplayChunk, ReplayMemory, Trajectory

STACKED = FrameShape((2, 2, 4), "uint8", 4)
VECTOR = FrameShape((4,), "float32", 1)


class Transition(NamedTuple):
    """What an actor observed, did and observed next."""

    state: NDArray[Any]
    action: int
    reward: float
    terminal: bool
    next_state: NDArray[Any] | None


class Source:
    """An actor whose frames are all different."""

    def __init__(self, shape: FrameShape, trajectory: Trajectory, seed: int, first: int) -> None:
        self.shape = shape
        self.trajectory = trajectory
        self.rng = np.random.default_rng(seed)
        self.count = first
        self.truth: list[Transition] = []
        self.frames: list[NDArray[Any]] = []
        self._begin()

    def _frame(self) -> NDArray[Any]:
        self.count += 1
        if self.shape.stack == 1:
            return np.full(self.shape.frame, self.count, self.shape.dtype)
        return np.array([self.count], "<u4").view(np.uint8).reshape(self.shape.frame)

    def _observe(self) -> NDArray[Any]:
        frame = self._frame()
        if self.shape.stack == 1:
            return frame
        self.frames = [*self.frames[1:], frame]
        return np.stack(self.frames, -1)

    def _begin(self) -> None:
        self.trajectory.begin_episode()
        self.frames = [np.zeros(self.shape.frame, self.shape.dtype)] * 4
        self.state = self._observe()

    def act(self) -> None:
        self.trajectory.add_observation(self.state)
        action, reward = int(self.rng.integers(5)), float(np.float32(self.rng.normal()))
        draw = self.rng.random()
        before = self.state
        if draw < 0.04:  # the environment crashed: the next state is unknown
            self._begin()
            return
        self.state = self._observe()
        terminal = 0.04 <= draw < 0.2
        self.trajectory.add_transition(action, reward, terminal=terminal)
        self.truth.append(Transition(before, action, reward, terminal, None if terminal else self.state))
        if 0.16 <= draw < 0.3:  # terminated or truncated; between 0.04 and 0.16 only a life is lost
            if not terminal:
                self.trajectory.add_observation(self.state)
            self._begin()


def key(transition: Transition) -> tuple[Any, ...]:
    after = None if transition.next_state is None else transition.next_state.tobytes()
    return (transition.state.tobytes(), transition.action, transition.reward, transition.terminal, after)


def sampled(batch: Batch) -> list[tuple[Any, ...]]:
    return [
        key(
            Transition(
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
def test_sample_draws_every_stored_transition_equally_often(shape: FrameShape, writers: int) -> None:
    rng = np.random.default_rng(5)
    memory = ReplayMemory(shape, 100)
    sources = [
        Source(shape, Trajectory(shape, independent_chunks=writers > 1), seed, 10_000 * seed)
        for seed in range(writers)
    ]
    for k in range(60 // writers * 4):
        source = sources[k % writers]
        for _ in range(int(rng.integers(1, 9))):
            source.act()
        memory.add(source.trajectory.take_chunk())
    truth = {key(transition) for source in sources for transition in source.truth}
    counts: Counter[tuple[Any, ...]] = Counter()
    for _ in range(200):
        batch = memory.sample(64, rng)
        assert batch is not None
        counts.update(sampled(batch))
    assert set(counts) <= truth
    assert any(not k[3] for k in counts)
    assert any(k[3] for k in counts)
    # All stored transitions but those that lost a frame of their state or wait for the next frame.
    assert memory.n_transitions - 12 <= len(counts) <= memory.n_transitions
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_memory_stores_each_frame_once() -> None:
    memory = ReplayMemory(FrameShape((84, 84, 4), "uint8", 4), 1_000)
    trajectory = Trajectory(memory.shape)
    trajectory.begin_episode()
    for _ in range(100):
        trajectory.add_observation(np.ones((84, 84, 4), np.uint8))
        trajectory.add_transition(0, 0.0, terminal=False)
        memory.add(trajectory.take_chunk())
    assert 100 * 84 * 84 < memory.bytes_filled < 101 * 84 * 84
    assert memory.fill == 0.1


def test_sample_returns_none_until_the_next_state_is_stored() -> None:
    memory = ReplayMemory(VECTOR, 10)
    rng = np.random.default_rng(0)
    assert memory.sample(4, rng) is None
    trajectory = Trajectory(VECTOR)
    trajectory.begin_episode()
    trajectory.add_observation(np.zeros(4, np.float32))
    trajectory.add_transition(1, 2.0, terminal=False)
    memory.add(trajectory.take_chunk())
    assert memory.n_transitions == 1
    assert memory.sample(4, rng) is None
    trajectory.add_observation(np.ones(4, np.float32))
    memory.add(trajectory.take_chunk())
    batch = memory.sample(4, rng)
    assert batch is not None
    assert batch.reward_B.tolist() == [2.0] * 4


def test_restored_memory_samples_the_same_transitions() -> None:
    source = Source(STACKED, Trajectory(STACKED), 1, 0)
    memory = ReplayMemory(STACKED, 50)
    for _ in range(70):
        source.act()
        memory.add(source.trajectory.take_chunk())
    again = ReplayMemory(STACKED, 50)
    again.restore(memory.state())
    for _ in range(30):
        source.act()
        chunk: ReplayChunk = source.trajectory.take_chunk()
        memory.add(chunk)
        again.add(chunk)
    assert again.n_transitions == memory.n_transitions
    mine, restored = (replay.sample(500, np.random.default_rng(2)) for replay in (memory, again))
    assert mine is not None
    assert restored is not None
    assert sampled(mine) == sampled(restored)
