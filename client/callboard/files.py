"""Files that a script logs: checked before they are copied."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from callboard.limits import MAX_FILE_BYTES, MAX_FRAMES, MAX_VIDEO_BYTES, SIDE_PIXELS

_BLOCK_BYTES = 2**20

_SIGNATURES = ((4, b"ftyp"), (0, b"\x1aE\xdf\xa3"), (0, b"GIF8"))


class SentFile(NamedTuple):
    """What is to be sent."""

    n_bytes: int
    write: Callable[[Path], object]
    """Writes it to a path. Raises ValueError if it cannot be read, OSError if it cannot be written."""
    fields: dict[str, Any]
    """Fields of the request that follows the upload."""


def sha256_of(file: IO[bytes]) -> hashlib._Hash:
    """The SHA-256 of what a file still has."""
    digest = hashlib.sha256()
    for block in iter(partial(file.read, _BLOCK_BYTES), b""):
        digest.update(block)
    return digest


def checkpoint_of(path: str | os.PathLike[str], score: float | None) -> SentFile:
    """A file that is kept as it is.

    Raises:
        ValueError: it cannot be sent.
    """
    file, n_bytes = _regular("path", path, MAX_FILE_BYTES)
    suffix = file.suffix.lower()
    fields = {"score": score, "suffix": suffix if re.fullmatch(r"\.[a-z0-9]{1,10}", suffix) else ""}
    return SentFile(n_bytes, partial(_copy, "path", file), fields)


def video_of(
    path_or_frames: Any, fps: float, on_change: Callable[[str, str], object] = lambda what, details: None
) -> SentFile:
    """A video file, or frames; of too many frames, every second, third, ... one.

    Args:
        path_or_frames: path of the file, or the frames.
        fps: frames per second, of frames.
        on_change: called with what was changed, and details.

    Raises:
        ValueError: it cannot be sent.
    """
    if isinstance(path_or_frames, (str, os.PathLike)):
        file, n_bytes = _regular("path_or_frames", path_or_frames, MAX_VIDEO_BYTES)
        _check_signature(file)
        return SentFile(n_bytes, partial(_copy, "path_or_frames", file), {"form": "file"})
    frames, every = _frames(path_or_frames)
    if every > 1:
        on_change("a video with too many frames: some are left out", f"one of {every} frames is sent")
        fps /= every
    write = partial(_save, frames)
    return SentFile(frames.nbytes, write, {"form": "frames", "fps": fps})


def frames_of_videos(videos: Any) -> Any:
    """Videos of the shape (N, T, C, H, W) as frames (T, H, N * W, 3), side by side.

    Raises:
        ValueError: they have another shape, or neither 1 nor 3 channels.
    """
    if hasattr(videos, "detach"):
        videos = videos.detach().cpu()  # of torch
    pixels_NTCHW = np.asarray(videos)
    shape = pixels_NTCHW.shape
    if len(shape) != 5 or shape[2] not in (1, 3):
        raise ValueError(f"vid_tensor: must have the shape (N, T, C, H, W), with C 1 or 3: got {shape}")
    if pixels_NTCHW.dtype != np.uint8:
        pixels_NTCHW = (np.clip(pixels_NTCHW.astype(np.float32), 0.0, 1.0) * 255).astype(np.uint8)
    pixels_NTCHW = np.repeat(pixels_NTCHW, 3 // shape[2], axis=2)
    N, T, C, H, W = pixels_NTCHW.shape
    return pixels_NTCHW.transpose(1, 3, 0, 4, 2).reshape(T, H, N * W, C)


def _regular(argument: str, path: str | os.PathLike[str], max_bytes: int) -> tuple[Path, int]:
    file = Path(path)
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        raise ValueError(f"{argument}: {file} cannot be read: {error}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{argument}: {file} must be a file")
    if not 0 < status.st_size <= max_bytes:
        raise ValueError(f"{argument}: {file} must have 1 to {max_bytes:,} bytes: it has {status.st_size:,}")
    return file, status.st_size


def _check_signature(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            head = opened.read(16)
    except OSError as error:
        raise ValueError(f"path_or_frames: {file} cannot be read: {error}") from None
    if any(head[offset:].startswith(signature) for offset, signature in _SIGNATURES):
        return
    if (head[:4], head[8:12]) != (b"RIFF", b"AVI "):
        raise ValueError(
            f"path_or_frames: {file} is not a video: it must be an MP4, MOV, WebM, Matroska, AVI or GIF file"
        )


def _frames(value: Any) -> tuple[Any, int]:
    """Frames that the server accepts, and of how many given frames each is the first."""
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        value = value.detach().cpu()  # of torch
    frames = np.asarray(value)
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
        given = f"{frames.dtype} of the shape {frames.shape}"
        raise ValueError(f"path_or_frames: frames must be uint8 of the shape (T, H, W, 3): got {given}")
    n_frames, height, width, _ = frames.shape
    shortest, longest = SIDE_PIXELS
    if not (n_frames > 0 and shortest <= min(height, width) <= max(height, width) <= longest):
        raise ValueError(
            f"path_or_frames: must have at least one frame, of {shortest} to {longest:,} pixels per side: "
            f"got {n_frames:,} of {width} x {height}"
        )
    n_most = min(MAX_FRAMES, MAX_VIDEO_BYTES // (height * width * 3))
    every = -(-n_frames // n_most)
    return frames[::every], every


def _copy(argument: str, file: Path, to: Path) -> None:
    with to.open("wb") as copy:
        for block in _blocks(argument, file):
            copy.write(block)


def _blocks(argument: str, file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb", buffering=0) as opened:
            while block := opened.read(_BLOCK_BYTES):
                yield block
    except OSError as error:
        raise ValueError(f"{argument}: {file} cannot be read: {error}") from None


def _save(frames: Any, path: Path) -> None:
    with path.open("wb") as file:  # `numpy.save` would append its own suffix to a path
        np.save(file, np.ascontiguousarray(frames), allow_pickle=False)
