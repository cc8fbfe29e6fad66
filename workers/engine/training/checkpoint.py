"""Checkpoints: everything an engine needs to resume, written atomically; see `docs/checkpoints.md`."""

import hashlib
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from backend.specs.agents import DESCRIBED
from backend.specs.events import CheckpointSavedEvent, CheckpointsRemovedEvent
from backend.specs.run import RunSpec
from workers.engine.files import replacing
from workers.engine.methods.base import DivergedError
from workers.engine.nn.named import with_names, without_names
from workers.engine.training.journal import Journal

FORMAT = 2
"""Version of the file format: a vector of parameters is stored as one tensor for each module path."""
INDEX = "archive/parameters.json"
"""Member of the file that lists the shape of each parameter of theta and the member with its bytes."""
AGENT = "archive/agent.json"
"""Member of the file that describes its agent: the parts of the run's spec that decide how it observes and
acts."""
KEPT = 3
"""Number of newest checkpoints kept, in addition to those that were evaluated."""
NAME = re.compile(r"a(?P<attempt>\d+)-s(?P<agent_steps>\d+)\.pt")


class DamagedCheckpointError(ValueError):
    """The file is not a checkpoint that this engine can read."""


def file_name(attempt: int, agent_steps: int) -> str:
    """Name of a checkpoint's file; sorts by agent steps within an attempt."""
    return f"a{attempt}-s{agent_steps:012d}.pt"


def agent_steps_of(name: str) -> int:
    """Agent steps of the checkpoint with this file name, as `file_name` gives it."""
    match = NAME.fullmatch(name)
    assert match is not None
    return int(match["agent_steps"])


def save(
    path: Path, state: dict[str, Any], network: nn.Module | None = None, spec: RunSpec | None = None
) -> tuple[str, int]:
    """Write `state` (tensors and plain values) so that `path` is either absent or complete.

    Args:
        path: path of the file.
        state: the state, with the learner's, theta among it, at `learner`.
        network: flat vectors of its parameters are stored as tensors by module path; None: as they are.
        spec: the run's specification, whose description of the agent is stored.

    Returns:
        The file's SHA-256 in hexadecimal and its size in bytes.
    """
    index: dict[str, Any] = {}
    if network is not None:
        # torch.save numbers the members in the order of the tensors: theta is the first.
        learner = with_names(state["learner"], network)
        learner = {"theta": learner["theta"], **learner}
        state = {"learner": learner, **{key: value for key, value in state.items() if key != "learner"}}
        index = {
            name: {"member": f"archive/data/{k}", "shape": list(part.shape), "dtype": "<f4"}
            for k, (name, part) in enumerate(learner["theta"].items())
        }
    with replacing(path) as partial:
        with partial.open("wb") as file:
            torch.save({"format": FORMAT, **state, "parameter_names": list(index)}, file)
        with zipfile.ZipFile(partial, "a") as archive:
            archive.writestr(INDEX, json.dumps(index, indent=1))
            if spec is not None:
                archive.writestr(AGENT, spec.model_dump_json(include=set(DESCRIBED), indent=1))
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = partial.stat().st_size
    return digest, size


def check_state(state: Any, path: tuple[str, ...] = ()) -> None:
    """Check that no tensor in a state holds NaN or Inf: the metrics checked last may be older than the state.

    Raises:
        DivergedError: a tensor does; the message has its keys, which follow on those in `path`.
    """
    if isinstance(state, dict | list | tuple):
        for key, value in state.items() if isinstance(state, dict) else enumerate(state):
            check_state(value, (*path, str(key)))
    elif isinstance(state, torch.Tensor) and state.is_floating_point() and not state.isfinite().all():
        raise DivergedError(".".join(path), float(state[~state.isfinite()][0]))


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint, with flat vectors of parameters. Never runs code from it.

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
        raise DamagedCheckpointError(
            f"{path.name}: not a checkpoint of format {FORMAT}; another version may have written it"
        )
    flat: dict[str, Any] = without_names(state, state.pop("parameter_names", []))
    return flat


def newest(folder: Path) -> str | None:
    """File name of the readable checkpoint with the most agent steps; None if there is none."""
    candidates = [
        (int(m["agent_steps"]), int(m["attempt"]), p)
        for p in folder.glob("*.pt")
        if (m := NAME.fullmatch(p.name))
    ]
    for _, _, path in sorted(candidates, reverse=True):
        try:
            load(path)
        except DamagedCheckpointError:
            continue
        return path.name
    return None


class Checkpoints:
    """Saves an attempt's checkpoints; removes all but the newest few and the evaluated ones."""

    saved_at_s: float
    """The run's training time at the last save."""

    def __init__(self, folder: Path, attempt: int, journal: Journal) -> None:
        self.saved_at_s = 0.0
        self._folder = folder
        self._attempt = attempt
        self._journal = journal
        self._saved: list[str] = []
        self._evaluated: set[str] = set()

    def load(self, name: str) -> dict[str, Any]:
        """Load a checkpoint of this run, and the names of the others that are kept.

        Raises:
            DamagedCheckpointError: the file cannot be read.
        """
        state = load(self._folder / name)
        self._saved = list(state["saved"])
        self._evaluated = set(state["evaluated"])
        self.saved_at_s = state["counters"]["wall_time_s"]
        return state

    def name(self) -> str:
        """File name of a checkpoint saved now."""
        return file_name(self._attempt, self._journal.counters.agent_steps)

    def path(self, name: str) -> Path:
        """Path of a checkpoint on this host; the file may be absent."""
        return self._folder / name

    def save(
        self, state: Callable[[], dict[str, Any]], network: nn.Module, spec: RunSpec, *, evaluated: bool
    ) -> None:
        """Save `state` and the counters; the events before it are on disk first.

        If this step is saved already, it is only marked as evaluated.

        Args:
            state: a function that returns the learner's state, at `learner`, and the loop's.
            network: the network whose parameters theta holds.
            spec: the run's specification, with its settings at this step.
            evaluated: whether these parameters were scored; such a checkpoint is kept.

        Raises:
            DivergedError: the state holds NaN or Inf.
        """
        journal, counters, name = self._journal, self._journal.counters, self.name()
        journal.emit_points(include_means=True)
        if evaluated:
            self._evaluated.add(name)
        if name not in self._saved:
            kept = {"saved": [*self._saved, name], "evaluated": sorted(self._evaluated)}
            saved = state()
            check_state(saved)
            content = {**saved, "counters": counters.as_dict(), **kept}
            digest, size = save(self.path(name), content, network, spec)
            self._saved.append(name)
            journal.emit(
                CheckpointSavedEvent(
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
        thinned = [n for n in self._saved[:-KEPT] if n not in self._evaluated]
        if thinned:
            self._saved = [n for n in self._saved if n not in thinned]
            journal.emit(CheckpointsRemovedEvent(files=thinned))
        journal.flush(sync=True)
        for removed in thinned:
            self.path(removed).unlink(missing_ok=True)
        self.saved_at_s = counters.wall_time_s
