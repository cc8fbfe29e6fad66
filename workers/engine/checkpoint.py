"""Checkpoints: everything an engine needs to go on, written whole or not at all."""

import hashlib
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import torch

from workers.engine.files import replacing

FORMAT = 1
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
