"""Checkpoints: everything an engine needs to go on, written whole or not at all."""

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from backend.specs.events import CheckpointSaved, CheckpointsRemoved
from workers.engine.files import replacing
from workers.engine.journal import Journal

FORMAT = 1
KEPT = 3
"""Newest checkpoints kept, beside those that were evaluated."""
NAME = re.compile(r"a(?P<attempt>\d+)-s(?P<agent_steps>\d+)\.pt")


class DamagedCheckpointError(ValueError):
    """The file is not a checkpoint this engine can read."""


def file_name(attempt: int, agent_steps: int) -> str:
    """Name of a checkpoint's file; sorts by agent steps within an attempt."""
    return f"a{attempt}-s{agent_steps:012d}.pt"


def save(path: Path, state: dict[str, Any]) -> tuple[str, int]:
    """Write `state` (tensors and plain values) so that `path` is either absent or complete.

    Returns:
        The file's SHA-256 in hexadecimal and its size in bytes.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **state}, buffer)
    content = buffer.getvalue()
    with replacing(path) as partial:
        partial.write_bytes(content)
    return hashlib.sha256(content).hexdigest(), len(content)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint. Never runs code from it.

    Raises:
        DamagedCheckpointError: not a checkpoint, torn, or of another format.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if (member := archive.testzip()) is not None:
                raise zipfile.BadZipFile(f"{member} is damaged")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types for a damaged file
        raise DamagedCheckpointError(f"{path.name}: {error}") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise DamagedCheckpointError(f"{path.name}: not a checkpoint of format {FORMAT}")
    return state


def newest(folder: Path) -> str | None:
    """File name of the checkpoint with the most agent steps that can be read, if there is one."""
    found = [
        (int(m["agent_steps"]), int(m["attempt"]), p)
        for p in folder.glob("*.pt")
        if (m := NAME.fullmatch(p.name))
    ]
    for _, _, path in sorted(found, reverse=True):
        try:
            load(path)
        except DamagedCheckpointError:
            continue
        return path.name
    return None


class Checkpoints:
    """An attempt's: the newest few, and those that were evaluated."""

    saved_at_s: float
    """The run's training time at the last one."""

    def __init__(self, folder: Path, attempt: int, journal: Journal) -> None:
        self.saved_at_s = 0.0
        self._folder = folder
        self._attempt = attempt
        self._journal = journal
        self._saved: list[str] = []
        self._evaluated: set[str] = set()

    def load(self, name: str) -> dict[str, Any]:
        """Read one of this run, with the names of those kept beside it.

        Raises:
            DamagedCheckpointError: as `load`.
        """
        state = load(self._folder / name)
        self._saved = list(state["saved"])
        self._evaluated = set(state["evaluated"])
        self.saved_at_s = state["counters"]["wall_time_s"]
        return state

    def name(self) -> str:
        """Of one that is saved now."""
        return file_name(self._attempt, self._journal.counters.agent_steps)

    def path(self, name: str) -> Path:
        """Where one is, if it is on this host."""
        return self._folder / name

    def save(self, state: Callable[[], dict[str, Any]], *, evaluated: bool) -> None:
        """Save the `state` there is and how far the run is; earlier events are on disk before this one.

        Where this step's is saved already, it only becomes one that was evaluated.
        """
        journal, counters, name = self._journal, self._journal.counters, self.name()
        journal.log_points(settled=True)
        if name not in self._saved:
            kept = {"saved": [*self._saved, name], "evaluated": sorted(self._evaluated)}
            digest, size = save(self.path(name), {**state(), "counters": counters.as_dict(), **kept})
            self._saved.append(name)
            journal.say(
                CheckpointSaved(
                    agent_steps=counters.agent_steps,
                    frames=counters.frames,
                    updates=counters.updates,
                    episodes=counters.episodes,
                    wall_time_s=counters.wall_time_s,
                    file=name,
                    sha256=digest,
                    size_bytes=size,
                )
            )
        if evaluated:
            self._evaluated.add(name)
        thinned = [n for n in self._saved[:-KEPT] if n not in self._evaluated]
        if thinned:
            self._saved = [n for n in self._saved if n not in thinned]
            journal.say(CheckpointsRemoved(files=thinned))
        journal.flush(sync=True)
        for old in thinned:
            self.path(old).unlink(missing_ok=True)
        self.saved_at_s = counters.wall_time_s
