"""Emulator states of long Atari episodes: an episode can be repeated from the nearest of them."""

from dataclasses import dataclass
from pathlib import Path

import ale_py
import numpy as np

from workers.engine.envs.atari import AtariEnv, Snapshot
from workers.engine.files import replacing

INTERVAL_FRAMES = 2_250
"""Repeating as many takes about a quarter of a second."""
MIN_FRAMES = INTERVAL_FRAMES
"""Shorter episodes have none."""


@dataclass(frozen=True)
class EmulatorState:
    """The state of an episode before a decision."""

    decision: int
    """Number of decisions before it."""
    frames: int
    """Emulator frames of these decisions."""
    snapshot: Snapshot


class EmulatorStates:
    """Collects the states of an episode while it is repeated, and writes them if it is long."""

    def __init__(self, env: AtariEnv) -> None:
        self._env = env
        self._frames = 0
        self._states: list[EmulatorState] = []

    def add(self, decision: int, frames: int) -> None:
        """Keep the present state if one is due.

        Args:
            decision: number of decisions so far.
            frames: emulator frames of the latest one.
        """
        self._frames += frames
        if self._frames >= INTERVAL_FRAMES * (len(self._states) + 1):
            self._states.append(EmulatorState(decision, self._frames, self._env.snapshot()))

    def save(self, path: Path) -> bool:
        """Write the states of a long episode to `path` (.npz), atomically; return whether it is long."""
        if not self._states or self._frames <= MIN_FRAMES:
            return False
        arrays = {
            f"{number}.{name}": array
            for number, state in enumerate(self._states)
            for name, array in state.snapshot.items()
        }
        with replacing(path) as partial:
            np.savez_compressed(
                partial,
                allow_pickle=False,
                ale_py=np.array(ale_py.__version__),
                decisions=np.array([state.decision for state in self._states], np.int64),
                frames=np.array([state.frames for state in self._states], np.int64),
                **arrays,
            )
        return True


def latest_before(path: Path, decision: int) -> EmulatorState | None:
    """The last state of a file before a decision, from which at least one decision leads there.

    Returns:
        None if there is none, or if another version of ale-py wrote the file.
    """
    with np.load(path, allow_pickle=False) as file:
        if str(file["ale_py"]) != ale_py.__version__:
            return None
        number = int(np.searchsorted(file["decisions"], decision)) - 1
        if number < 0:
            return None
        prefix = f"{number}."
        return EmulatorState(
            int(file["decisions"][number]),
            int(file["frames"][number]),
            {name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)},
        )
