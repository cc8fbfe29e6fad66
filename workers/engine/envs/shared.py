"""The memory that a vectorised environment's processes share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.processes.shared_memory import SharedArrays

NOT_WATCHED = -1
"""In `live_environment`: no environment is watched."""
MAX_LIVE_FRAME_BYTES = 1 << 18
MAX_CRASH_BYTES = 400


class EnvArrays(SharedArrays):
    """Arrays of S slots and B environments."""

    observation_SB: NDArray[Any]
    """Observations; a step writes one slot, for the environments that step."""
    final_observation_B: NDArray[Any]
    """Last observation of an episode that was truncated, or whose environment crashed, in this step."""
    action_B: NDArray[Any]
    """(B,) int32, or (B, D) float32."""
    acting_B: NDArray[np.bool_]
    """The environments that step; the others keep their states."""
    reward_B: NDArray[np.float32]
    terminated_B: NDArray[np.bool_]
    episode_over_B: NDArray[np.bool_]
    truncated_B: NDArray[np.bool_]
    frames_B: NDArray[np.int32]
    crashed_B: NDArray[np.bool_]
    """The environment crashed in this step and was reset; the decision and its episode do not count."""
    crash_B: NDArray[np.bytes_]
    """How it crashed, in the first `MAX_CRASH_BYTES` bytes; meaningless if it has not."""
    lives_B: NDArray[np.int8]
    next_seed_B: NDArray[np.uint32]
    """Seed of the episode that begins when the current one ends. `VectorEnv` writes it."""
    episode_return_B: NDArray[np.float64]
    """Like the next three, of the current episode, or of the one that ended in this step."""
    episode_length_B: NDArray[np.int32]
    episode_frames_B: NDArray[np.int32]
    episode_seed_B: NDArray[np.uint32]
    """`EnvSlice` writes it. `VectorEnv` writes that of the new episode once it has read the ended one's."""
    live_environment: NDArray[np.int32]
    """The one environment that is watched, or `NOT_WATCHED`."""
    live_frame: NDArray[np.uint8]
    """The watched environment's newest JPEG, in the first `live_frame_bytes` bytes."""
    live_frame_bytes: NDArray[np.int32]
    """Size of the JPEG in `live_frame`; 0 once it is taken."""

    def __init__(
        self,
        *,
        slots: int,
        environments: int,
        observation_shape: tuple[int, ...],
        observation_dtype: str,
        action_shape: tuple[int, ...],
    ) -> None:
        """`action_shape` is empty for discrete actions, (D,) for a `Box`."""
        b = (environments,)
        observation = (*b, *observation_shape)
        super().__init__(
            {
                "observation_SB": ((slots, *observation), observation_dtype),
                "final_observation_B": (observation, observation_dtype),
                "action_B": ((*b, *action_shape), "float32" if action_shape else "int32"),
                "acting_B": (b, "bool"),
                "reward_B": (b, "float32"),
                "terminated_B": (b, "bool"),
                "episode_over_B": (b, "bool"),
                "truncated_B": (b, "bool"),
                "frames_B": (b, "int32"),
                "crashed_B": (b, "bool"),
                "crash_B": (b, f"S{MAX_CRASH_BYTES}"),
                "lives_B": (b, "int8"),
                "next_seed_B": (b, "uint32"),
                "episode_return_B": (b, "float64"),
                "episode_length_B": (b, "int32"),
                "episode_frames_B": (b, "int32"),
                "episode_seed_B": (b, "uint32"),
                "live_environment": ((1,), "int32"),
                "live_frame": ((MAX_LIVE_FRAME_BYTES,), "uint8"),
                "live_frame_bytes": ((1,), "int32"),
            }
        )
