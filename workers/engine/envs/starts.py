"""Starts of a start set: emulator states from which Atari games are played on (Nair et al. 2015, 5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ale_py
import numpy as np

from workers.engine.files import replacing


class StartsError(ValueError):
    """A file of starts cannot be used here; the message states why."""


@dataclass(frozen=True)
class EpisodeStart:
    """One start."""

    state: bytes
    """State of the emulator before the lead."""
    lead: tuple[int, ...]
    """ALE's actions of the frames between that state and the start, one a frame: they are played again, so
    that the stacked frames of the first observation are those of the game."""
    frames: int
    """Frames of the game up to the start."""


def save(path: Path, starts: Sequence[EpisodeStart]) -> None:
    """Write starts to `path` (.npz), whole or not at all."""
    with replacing(path) as partial:
        np.savez_compressed(
            partial,
            ale_py=np.str_(ale_py.__version__),
            states=np.frombuffer(b"".join(start.state for start in starts), np.uint8),
            state_lengths=np.array([len(start.state) for start in starts], np.int64),
            leads=np.array([action for start in starts for action in start.lead], np.int16),
            lead_lengths=np.array([len(start.lead) for start in starts], np.int64),
            frames=np.array([start.frames for start in starts], np.int64),
        )


def load(path: Path) -> list[EpisodeStart]:
    """Read starts that `save` has written.

    Raises:
        StartsError: another version of ale-py wrote them.
    """
    with np.load(path, allow_pickle=False) as file:
        version = str(file["ale_py"])
        if version != ale_py.__version__:
            raise StartsError(
                f"the set's emulator states are of ale-py {version}, and this host has "
                f"{ale_py.__version__}: export the set and import it again, which makes new ones"
            )
        state_ends = np.cumsum(file["state_lengths"])[:-1]
        lead_ends = np.cumsum(file["lead_lengths"])[:-1]
        return [
            EpisodeStart(state.tobytes(), tuple(lead.tolist()), int(frames))
            for state, lead, frames in zip(
                np.split(file["states"], state_ends),
                np.split(file["leads"], lead_ends),
                file["frames"],
                strict=True,
            )
        ]
