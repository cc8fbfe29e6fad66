"""Experience replay: a ring of frames, each stored once, and stacked when it is sampled.

A slot holds a frame and, where one was made there, the decision: action, reward, whether it was terminal. The
state s_t of a slot is its frame behind those before it, as many as the world stacks and the episode has; what
lacks is black. s_{t+1} is that of the next slot.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SLOT = np.dtype(
    [
        ("action", "<i2"),
        ("reward", "<f4"),
        ("terminal", "?"),
        ("decided", "?"),
        ("history", "u1"),
        ("follows", "?"),
    ]
)
"""`decided`: the slot holds a decision, not only a frame that is seen from others; `history`: how many frames
before it belong to its state; `follows`: the slot before holds the frame before, of the same episode."""

MAX_DRAWS = 32


class Shape(NamedTuple):
    """What a world's observations are made of."""

    observation: tuple[int, ...]
    dtype: str
    stack: int
    """Pictures along the last axis, oldest first; 1: the observation is one frame."""

    @property
    def frame(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return self.observation[:-1] if self.stack > 1 else self.observation

    @property
    def frame_bytes(self) -> int:
        """Bytes of a frame."""
        return int(np.prod(self.frame)) * np.dtype(self.dtype).itemsize

    def newest(self, observation: NDArray[Any]) -> NDArray[Any]:
        """The frame that an observation has and the one before it had not."""
        return observation[..., -1] if self.stack > 1 else observation


class Chunk(NamedTuple):
    """T slots of one actor's trajectory, in order."""

    frame_T: NDArray[Any]
    slot_T: NDArray[np.void]


class Batch(NamedTuple):
    """B decisions, drawn uniformly."""

    state_B: NDArray[Any]
    """(B, …) as the world gives it."""
    action_B: NDArray[np.int64]
    reward_B: NDArray[np.float32]
    terminal_B: NDArray[np.bool_]
    next_state_B: NDArray[Any]
    """(B, …); of no meaning where terminal."""


class Trajectory:
    """One actor's experience, on its way to a replay shard."""

    def __init__(self, shape: Shape, *, whole: bool) -> None:
        """Nothing has been seen; `begin` comes first.

        Args:
            shape: of the world's observations.
            whole: whether each chunk must stand by itself, because others' may lie between this actor's: it
                then repeats the frames that its first decision sees, and its last decision waits for the
                next chunk, which has the frame after it.
        """
        self._shape = shape
        self._whole = whole
        self._frames: list[NDArray[Any]] = []
        self._slots: list[list[Any]] = []
        self._age = 0

    def __len__(self) -> int:
        """Slots in the next chunk."""
        return len(self._slots)

    def begin(self) -> None:
        """The next state is an episode's first."""
        self._age = 0
        if not any(slot[3] for slot in self._slots):
            self._frames.clear()
            self._slots.clear()

    def see(self, observation: NDArray[Any]) -> None:
        """Add the present state; `decide` comes next, or `begin` where the episode was cut off here."""
        self._frames.append(self._shape.newest(observation).copy())
        history = min(self._age, self._shape.stack - 1)
        self._slots.append([0, 0.0, False, False, history, self._age > 0])
        self._age += 1

    def decide(self, action: int, reward: float, *, terminal: bool) -> None:
        """What was done in the state seen last, and what it led to."""
        self._slots[-1][:4] = action, reward, terminal, True

    def take(self) -> Chunk:
        """Hand over what was added since the last time."""
        frame_T = np.stack(self._frames) if self._frames else np.empty((0, *self._shape.frame))
        slot_T = np.array([tuple(slot) for slot in self._slots], SLOT)
        kept = len(self._slots) - self._shape.stack if self._whole else len(self._slots)
        del self._frames[: max(kept, 0)], self._slots[: max(kept, 0)]
        if self._slots:
            slot_T["follows"][0] = False
            for slot in self._slots[:-1]:
                slot[3] = False
            last = self._slots[-1]
            if last[3] and not last[2]:
                slot_T["decided"][-1] = False
            else:
                last[3] = False
        return Chunk(frame_T, slot_T)

    def state(self) -> dict[str, int]:
        """Plain values; only between chunks that need not stand by themselves."""
        return {"age": self._age}

    def restore(self, state: dict[str, int]) -> None:
        """Go on in the middle of an episode."""
        self._age = state["age"]


class ReplayShard:
    """The newest `capacity` slots of one actor, or of several whose chunks stand by themselves."""

    def __init__(self, shape: Shape, capacity: int) -> None:
        self.shape = shape
        self.capacity = capacity
        # Zeros take no memory until they are written over.
        self._frames = np.zeros((capacity, *shape.frame), shape.dtype)
        self._slots = np.zeros(capacity, SLOT)
        self._next = 0
        self._filled = 0
        self.decisions = 0
        """That it holds."""

    @property
    def fill(self) -> float:
        """Share of its slots that are filled."""
        return self._filled / self.capacity

    def holds(self, decisions: int) -> bool:
        """Whether it has so many decisions, or is full: frames that are only seen take slots, too."""
        return self.decisions >= decisions or self._filled == self.capacity

    @property
    def bytes_filled(self) -> int:
        """Of frames and slots that are filled."""
        return self._filled * (self.shape.frame_bytes + SLOT.itemsize)

    def add(self, chunk: Chunk) -> None:
        """Write a chunk over the oldest slots."""
        frame_T, slot_T = (part[-self.capacity :] for part in chunk)
        T = len(slot_T)
        at = (self._next + np.arange(T)) % self.capacity
        self.decisions += int(slot_T["decided"].sum()) - int(self._slots["decided"][at].sum())
        self._frames[at] = frame_T
        self._slots[at] = slot_T
        self._next = (self._next + T) % self.capacity
        self._filled = min(self._filled + T, self.capacity)

    def sample(self, B: int, rng: np.random.Generator) -> Batch | None:
        """Draw B decisions uniformly, each as often as it comes; None where there is none to draw yet."""
        position_B = rng.integers(max(self._filled, 1), size=B)
        for _ in range(MAX_DRAWS):
            refused = np.flatnonzero(~self._usable(position_B))
            if not len(refused):
                return self._gather(position_B)
            position_B[refused] = rng.integers(max(self._filled, 1), size=len(refused))
        usable = np.flatnonzero(self._usable(np.arange(self._filled)))
        return self._gather(rng.choice(usable, B)) if len(usable) else None

    def state(self) -> dict[str, Any]:
        """What is filled, oldest first, as arrays."""
        at = self._at(np.arange(self._filled))
        return {"frames": self._frames[at], "slots": self._slots[at].view(np.uint8)}

    def restore(self, state: dict[str, Any]) -> None:
        """Hold what `state` gave, or the newest part of it."""
        self._next = self._filled = self.decisions = 0
        self._slots[:] = 0
        self.add(Chunk(np.asarray(state["frames"]), np.asarray(state["slots"]).view(SLOT)))

    def _at(self, position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index in the ring, given that from the oldest slot on."""
        return (self._next - self._filled + position) % self.capacity

    def _usable(self, position_B: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a slot has a decision, all its frames, and what came of it."""
        slot_B = self._slots[self._at(position_B)]
        continued_B = (position_B + 1 < self._filled) & self._slots["follows"][self._at(position_B + 1)]
        usable_B: NDArray[np.bool_] = (
            slot_B["decided"] & (slot_B["history"] <= position_B) & (slot_B["terminal"] | continued_B)
        )
        return usable_B

    def _gather(self, position_B: NDArray[np.int64]) -> Batch:
        slot_B = self._slots[self._at(position_B)]
        offset_K = np.arange(1 - self.shape.stack, 2)
        frame_BK = self._frames[self._at(position_B[:, None] + offset_K)]
        frame_BK[offset_K < -slot_B["history"][:, None].astype(np.int64)] = 0
        if self.shape.stack > 1:
            state_B, next_state_B = _stacked(frame_BK[:, :-1]), _stacked(frame_BK[:, 1:])
        else:
            state_B, next_state_B = frame_BK[:, 0], frame_BK[:, 1]
        action_B = slot_B["action"].astype(np.int64)
        return Batch(state_B, action_B, slot_B["reward"].copy(), slot_B["terminal"].copy(), next_state_B)


def _stacked(frame_BK: NDArray[Any]) -> NDArray[Any]:
    """(B, K, …) as (B, …, K), as they will be read: side by side in memory."""
    B, K, *shape = frame_BK.shape
    stack_B = np.empty((B, *shape, K), frame_BK.dtype)
    for k in range(K):
        stack_B[..., k] = frame_BK[:, k]
    return stack_B
