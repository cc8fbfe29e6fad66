"""The memory that a vectorised world's processes share, as NumPy arrays over one anonymous file.

The file has no name, so nothing is left behind however the processes end.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.specs.fields import Frozen
from workers.engine.mapped import map_arrays

NOBODY = -1
"""In `watched`: no one watches."""
MAX_PICTURE_BYTES = 1 << 18


class Layout(Frozen):
    """Shapes: S slots, B environments."""

    slots: int
    environments: int
    observation_shape: tuple[int, ...]
    observation_dtype: Literal["uint8", "float32"]
    action_shape: tuple[int, ...] = ()
    """Empty for discrete actions, (D,) for a `Box`."""

    def fields(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Name -> shape and dtype of every array, in order."""
        b = (self.environments,)
        observation = (*b, *self.observation_shape)
        return {
            "observation_SB": ((self.slots, *observation), self.observation_dtype),
            "final_observation_B": (observation, self.observation_dtype),
            "action_B": ((*b, *self.action_shape), "float32" if self.action_shape else "int32"),
            "acting_B": (b, "bool"),
            "reward_B": (b, "float32"),
            "terminal_B": (b, "bool"),
            "ended_B": (b, "bool"),
            "truncated_B": (b, "bool"),
            "frames_B": (b, "int32"),
            "crashed_B": (b, "bool"),
            "lives_B": (b, "int8"),
            "seed_B": (b, "uint32"),
            "episode_return_B": (b, "float64"),
            "episode_length_B": (b, "int32"),
            "episode_frames_B": (b, "int32"),
            "episode_seed_B": (b, "uint32"),
            "watched": ((1,), "int32"),
            "picture": ((MAX_PICTURE_BYTES,), "uint8"),
            "picture_bytes": ((1,), "int32"),
        }


class SharedArrays:
    """Views of the arrays of a `Layout`; every process that maps the same file sees the same bytes."""

    observation_SB: NDArray[Any]
    """Observations; a step writes one slot for all environments."""
    final_observation_B: NDArray[Any]
    """Last observation of an episode that was cut off in this step."""
    action_B: NDArray[Any]
    """(B,) int32, or (B, D) float32."""
    acting_B: NDArray[np.bool_]
    """Who takes a decision in this step; the others rest."""
    reward_B: NDArray[np.float32]
    terminal_B: NDArray[np.bool_]
    ended_B: NDArray[np.bool_]
    truncated_B: NDArray[np.bool_]
    frames_B: NDArray[np.int32]
    crashed_B: NDArray[np.bool_]
    """The world broke in this step and was begun anew; its episode counts for nothing."""
    lives_B: NDArray[np.int8]
    seed_B: NDArray[np.uint32]
    """Seed of the episode that begins when the present one ends."""
    episode_return_B: NDArray[np.float64]
    """With the next three: of the present episode, or of the one that ended in this step."""
    episode_length_B: NDArray[np.int32]
    episode_frames_B: NDArray[np.int32]
    episode_seed_B: NDArray[np.uint32]
    watched: NDArray[np.int32]
    """The one environment someone watches, or `NOBODY`."""
    picture: NDArray[np.uint8]
    """Its newest JPEG, of `picture_bytes`; 0 once it is taken."""
    picture_bytes: NDArray[np.int32]

    def __init__(self, layout: Layout, fd: int, *, create: bool) -> None:
        for name, array in map_arrays(fd, layout.fields(), create=create).items():
            setattr(self, name, array)
