"""Experience replay: a ring of frames, each stored once and stacked when it is sampled.

A slot holds one frame and, where the agent acted on it, the action, the clipped reward and whether the next
state was terminal. The state s_t of a slot is its frame stacked on those before it, as many as the
environment stacks and the episode has; missing ones are zeros. s_{t+1} is the state of the next slot.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SLOT = np.dtype(
    [
        ("action", "<i2"),
        ("reward", "<f4"),
        ("terminal", "?"),
        ("acted", "?"),
        ("history", "u1"),
        ("continues", "?"),
    ]
)
"""`acted`: the slot holds a transition, not only a frame of other slots' states; `history`: how many frames
before it belong to its state; `continues`: the slot before holds the frame before, of the same episode."""

MAX_DRAWS = 32


class FrameShape(NamedTuple):
    """How an environment's observations are composed of frames."""

    observation: tuple[int, ...]
    dtype: str
    stack: int
    """Frames along the last axis, oldest first; 1: the observation is one frame."""

    @property
    def frame(self) -> tuple[int, ...]:
        """Shape of a frame."""
        return self.observation[:-1] if self.stack > 1 else self.observation

    @property
    def frame_bytes(self) -> int:
        """Bytes of a frame."""
        return int(np.prod(self.frame)) * np.dtype(self.dtype).itemsize

    def newest(self, observation: NDArray[Any]) -> NDArray[Any]:
        """The newest frame of an observation."""
        return observation[..., -1] if self.stack > 1 else observation


class ReplayChunk(NamedTuple):
    """T consecutive slots of one actor's trajectory."""

    frame_T: NDArray[Any]
    slot_T: NDArray[np.void]


class Batch(NamedTuple):
    """B transitions, drawn uniformly."""

    state_B: NDArray[Any]
    """(B, …) as the environment gives it."""
    action_B: NDArray[np.int64]
    reward_B: NDArray[np.float32]
    terminated_B: NDArray[np.bool_]
    next_state_B: NDArray[Any]
    """(B, …); undefined where terminal."""


class _Slot:
    """A row of `SLOT` that is still being written."""

    __slots__ = ("acted", "action", "continues", "history", "reward", "terminal")

    def __init__(self, history: int, *, continues: bool) -> None:
        self.action, self.reward, self.terminal, self.acted = 0, 0.0, False, False
        self.history, self.continues = history, continues

    def row(self) -> tuple[Any, ...]:
        return (self.action, self.reward, self.terminal, self.acted, self.history, self.continues)


class Trajectory:
    """One actor's newest experience, handed to a replay memory in chunks."""

    def __init__(self, shape: FrameShape, *, independent_chunks: bool = False) -> None:
        """Start empty; `begin_episode` comes first.

        Args:
            shape: shape of the environment's observations.
            independent_chunks: whether chunks of other actors may lie between this actor's. Each chunk then
                repeats the frames of its first state, and the transition to a frame that is not there yet
                waits for the next chunk.
        """
        self._shape = shape
        self._independent = independent_chunks
        self._frames: list[NDArray[Any]] = []
        self._slots: list[_Slot] = []
        self._age = 0

    def __len__(self) -> int:
        """Slots in the next chunk."""
        return len(self._slots)

    def begin_episode(self) -> None:
        """The next observation is an episode's first."""
        self._age = 0
        if not any(slot.acted for slot in self._slots):
            self._frames.clear()
            self._slots.clear()

    def add_observation(self, observation: NDArray[Any]) -> None:
        """Add the current state; `add_transition` comes next, or `begin_episode` if it was truncated here."""
        self._frames.append(self._shape.newest(observation).copy())
        history = min(self._age, self._shape.stack - 1)
        self._slots.append(_Slot(history, continues=self._age > 0))
        self._age += 1

    def add_transition(self, action: int, reward: float, *, terminal: bool) -> None:
        """Add the action taken in the state added last, and its result."""
        slot = self._slots[-1]
        slot.action, slot.reward, slot.terminal, slot.acted = action, reward, terminal, True

    def take_chunk(self) -> ReplayChunk:
        """Return what was added since the last call."""
        frame_T = np.stack(self._frames) if self._frames else np.empty((0, *self._shape.frame))
        slot_T = np.array([slot.row() for slot in self._slots], SLOT)
        n_done = len(self._slots) - self._shape.stack if self._independent else len(self._slots)
        del self._frames[: max(n_done, 0)], self._slots[: max(n_done, 0)]
        if self._slots:
            slot_T["continues"][0] = False
            for slot in self._slots[:-1]:
                slot.acted = False
            last = self._slots[-1]
            if last.acted and not last.terminal:
                slot_T["acted"][-1] = False
            else:
                last.acted = False
        return ReplayChunk(frame_T, slot_T)

    def state(self) -> dict[str, int]:
        """Plain values for `restore`; only right after `take_chunk`, and without independent chunks."""
        return {"age": self._age}

    def restore(self, state: dict[str, int]) -> None:
        """Continue in the middle of an episode."""
        self._age = state["age"]


class ReplayMemory:
    """D: the newest `capacity` slots of one actor, or of several that send independent chunks."""

    def __init__(self, shape: FrameShape, capacity: int) -> None:
        self.shape = shape
        self.capacity = capacity
        # Zeros take no memory until they are overwritten.
        self._frames = np.zeros((capacity, *shape.frame), shape.dtype)
        self._slots = np.zeros(capacity, SLOT)
        self._next = 0
        self._filled = 0
        self.n_transitions = 0
        """Number of transitions that it holds."""

    @property
    def fill(self) -> float:
        """Filled slots as a fraction of all."""
        return self._filled / self.capacity

    def holds(self, n_transitions: int) -> bool:
        """Whether it holds at least `n_transitions`, or is full: frames without an action take slots."""
        return self.n_transitions >= n_transitions or self._filled == self.capacity

    @property
    def bytes_filled(self) -> int:
        """Bytes of filled frames and slots."""
        return self._filled * (self.shape.frame_bytes + SLOT.itemsize)

    def add(self, chunk: ReplayChunk) -> None:
        """Overwrite the oldest slots with a chunk."""
        frame_T, slot_T = (part[-self.capacity :] for part in chunk)
        T = len(slot_T)
        at = (self._next + np.arange(T)) % self.capacity
        self.n_transitions += int(slot_T["acted"].sum()) - int(self._slots["acted"][at].sum())
        self._frames[at] = frame_T
        self._slots[at] = slot_T
        self._next = (self._next + T) % self.capacity
        self._filled = min(self._filled + T, self.capacity)

    def sample(self, B: int, rng: np.random.Generator) -> Batch | None:
        """Draw B transitions uniformly with replacement; None while there is none that is complete."""
        position_B = rng.integers(max(self._filled, 1), size=B)
        for _ in range(MAX_DRAWS):
            refused = np.flatnonzero(~self._usable(position_B))
            if not len(refused):
                return self._gather(position_B)
            position_B[refused] = rng.integers(max(self._filled, 1), size=len(refused))
        usable = np.flatnonzero(self._usable(np.arange(self._filled)))
        return self._gather(rng.choice(usable, B)) if len(usable) else None

    def state(self) -> dict[str, Any]:
        """The filled slots, oldest first, as arrays."""
        at = self._at(np.arange(self._filled))
        return {"frames": self._frames[at], "slots": self._slots[at].view(np.uint8)}

    def restore(self, state: dict[str, Any]) -> None:
        """Hold what `state` returned, or the newest part of it that fits."""
        self._next = self._filled = self.n_transitions = 0
        self._slots[:] = 0
        self.add(ReplayChunk(np.asarray(state["frames"]), np.asarray(state["slots"]).view(SLOT)))

    def _at(self, position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index in the ring of a position counted from the oldest slot."""
        return (self._next - self._filled + position) % self.capacity

    def _usable(self, position_B: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a slot holds a transition whose frames are all there, those of its next state too."""
        slot_B = self._slots[self._at(position_B)]
        continued_B = (position_B + 1 < self._filled) & self._slots["continues"][self._at(position_B + 1)]
        usable_B: NDArray[np.bool_] = (
            slot_B["acted"] & (slot_B["history"] <= position_B) & (slot_B["terminal"] | continued_B)
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
    """(B, K, …) as (B, …, K), contiguous in the order in which it is read."""
    B, K, *shape = frame_BK.shape
    stack_B = np.empty((B, *shape, K), frame_BK.dtype)
    for k in range(K):
        stack_B[..., k] = frame_BK[:, k]
    return stack_B
