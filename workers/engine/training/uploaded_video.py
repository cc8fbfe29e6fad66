"""Videos that the scripts of external runs have uploaded, encoded again as H.264.

An uploaded file is not trusted: its kind is read from its first bytes, so that no playlist is followed; sizes
are bounded before frames are decoded; and the process has little memory, processor time and disk space.
"""

import errno
import json
import lzma
import math
import resource
import signal
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import av
import numpy as np
from numpy.typing import NDArray

from workers.engine.training.video import VideoFile

MIN_SIDE_PIXELS = 16
MAX_SIDE_PIXELS = 4_096
MAX_ENCODED_SIDE_PIXELS = 1_280
"""A larger video is encoded at a smaller size."""
MAX_FRAMES = 20_000
MAX_PIXELS = 2_000_000_000
"""Of all frames together: the processor time of an encoding is about linear in them."""
MAX_FRAMES_BYTES = 256 * 2**20
MAX_FPS = 240.0
MAX_MEMORY_BYTES = 2 * 2**30
"""Maximum address space of the process, most of which is never used."""
MAX_CPU_S = 600
MAX_ENCODED_BYTES = 2**30

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The machine's fault. FFmpeg reports a truncated file as EIO."""
_UNREADABLE = (
    av.FFmpegError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    KeyError,
    MemoryError,
    ArithmeticError,
    RuntimeError,
)

_CONTAINERS = ((4, b"ftyp", "mp4"), (0, b"\x1aE\xdf\xa3", "matroska"), (0, b"GIF8", "gif"))
_AVI = (b"RIFF", b"AVI ")

Frames = Iterator[NDArray[np.uint8]]


class InvalidVideoError(ValueError):
    """The uploaded file cannot be encoded; the message is shown on the run's page."""


def encode(upload: Path, out: Path, form: str, fps: float | None) -> dict[str, Any]:
    """Encode the video that a script has uploaded.

    Args:
        upload: a video file, or an archive with the array `frames`, (T, H, W, 3) RGB.
        out: the MP4 to write, atomically.
        form: `file` or `frames`.
        fps: frames per second, of frames.

    Returns:
        `n_frames` and `duration_s`.

    Raises:
        InvalidVideoError: it is not a video, or is too large.
        OSError: the disk is full.
    """
    try:
        if form == "frames":
            return _write(out, _frames_of_array(upload), fps or 30.0)
        container = av.open(str(upload), "r", format=_container_of(upload))
        with closing(container):
            return _write(out, _frames_of_file(container), _fps_of(container))
    except _UNREADABLE as error:
        number = getattr(error, "errno", None)
        if number in _DISK_FULL:
            raise
        if number == errno.EFBIG:
            raise InvalidVideoError(f"its encoding has more than {MAX_ENCODED_BYTES:,} bytes") from error
        reason = getattr(error, "strerror", None) or error  # the text of FFmpeg's errors names the file
        raise InvalidVideoError(f"it cannot be read as a video: {reason}") from error


def report(upload: Path, out: Path, form: str, fps: float | None) -> str:
    """Encode with bounded resources; return the result of `encode`, or the error of a bad upload, as JSON."""

    def stop(*_: object) -> None:
        raise InvalidVideoError(f"its encoding takes more than {MAX_CPU_S} s of processor time")

    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_ENCODED_BYTES, MAX_ENCODED_BYTES))
    signal.signal(signal.SIGXCPU, stop)
    # What the process has used before, for its imports, does not count. If it did, it might exceed the limit
    # by seconds: each of them sends a signal, and the second one would interrupt the end of the encoding.
    used_s = math.ceil(time.process_time())
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (used_s + MAX_CPU_S, used_s + MAX_CPU_S + 60))
        return json.dumps(encode(upload, out, form, fps))
    except InvalidVideoError as error:
        out.unlink(missing_ok=True)  # a beginning
        return json.dumps({"error": str(error)})


def _container_of(upload: Path) -> str:
    with upload.open("rb") as file:
        head = file.read(16)
    for offset, signature, container in _CONTAINERS:
        if head[offset:].startswith(signature):
            return container
    if (head[:4], head[8:12]) == _AVI:
        return "avi"
    raise InvalidVideoError("it is not an MP4, MOV, WebM, Matroska, AVI or GIF file")


def _fps_of(container: av.container.InputContainer) -> float:
    if not container.streams.video:
        raise InvalidVideoError("it has no video stream")
    stream = container.streams.video[0]
    stream.codec_context.thread_count = 1
    _check_size(stream.codec_context.width, stream.codec_context.height)
    return float(stream.average_rate or 30)


def _frames_of_file(container: av.container.InputContainer) -> Frames:
    yield from _scaled(container.decode(video=0))


def _scaled(frames: Iterator[av.VideoFrame]) -> Frames:
    """The frames, all at the size of the first, which is reduced to `MAX_ENCODED_SIDE_PIXELS` if larger."""
    width = height = n_pixels = 0
    for frame in frames:
        _check_size(frame.width, frame.height)
        n_pixels += frame.width * frame.height
        if n_pixels > MAX_PIXELS:
            raise InvalidVideoError(f"its frames have more than {MAX_PIXELS:,} pixels together")
        if not width:
            scale = min(1.0, MAX_ENCODED_SIDE_PIXELS / max(frame.width, frame.height))
            width, height = max(2, int(frame.width * scale)), max(2, int(frame.height * scale))
        scaled = frame.reformat(width=width, height=height, format="rgb24")
        yield np.asarray(scaled.to_ndarray(), np.uint8)


def _frames_of_array(upload: Path) -> Frames:
    with zipfile.ZipFile(upload) as archive, archive.open("frames.npy") as file:
        yield from _scaled(av.VideoFrame.from_ndarray(frame, format="rgb24") for frame in _arrays(file))


def _arrays(file: IO[bytes]) -> Frames:
    """The frames of an array in NumPy's format, one after another: its size is checked before any is read."""
    try:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else _read_header_2_0
        shape, is_fortran, dtype = read_header(file)
    except ValueError as error:
        raise InvalidVideoError(f"its frames cannot be read: {error}") from error
    if dtype != np.uint8 or len(shape) != 4 or shape[3] != 3 or min(shape) < 1:
        raise InvalidVideoError("its frames are not a uint8 array of the shape (T, H, W, 3)")
    n_bytes = math.prod(shape)
    if n_bytes > MAX_FRAMES_BYTES:
        raise InvalidVideoError(f"its frames have more than {MAX_FRAMES_BYTES:,} bytes")
    if is_fortran:
        yield from np.frombuffer(_exactly(file, n_bytes), np.uint8).reshape(shape, order="F")
        return
    for _ in range(shape[0]):
        yield np.frombuffer(_exactly(file, n_bytes // shape[0]), np.uint8).reshape(shape[1:])


def _read_header_2_0(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return np.lib.format.read_array_header_2_0(file)


def _exactly(file: IO[bytes], n_bytes: int) -> bytes:
    data = file.read(n_bytes)
    if len(data) < n_bytes:
        raise EOFError("its frames are incomplete")
    return data


def _check_size(width: int, height: int) -> None:
    if not MIN_SIDE_PIXELS <= min(width, height) <= max(width, height) <= MAX_SIDE_PIXELS:
        bounds = f"{MIN_SIDE_PIXELS} to {MAX_SIDE_PIXELS:,}"
        raise InvalidVideoError(f"it has {width} x {height} pixels; a side must have {bounds}")


def _write(out: Path, frames: Frames, fps: float) -> dict[str, Any]:
    if not 0 < fps <= MAX_FPS:
        raise InvalidVideoError(f"it has {fps:g} frames per second; the maximum is {MAX_FPS:g}")
    first = next(frames, None)
    if first is None:
        raise InvalidVideoError("it has no frames")
    with VideoFile.opened(out, fps) as video:
        video.append(first)
        for frame in frames:
            if video.n_frames == MAX_FRAMES:
                raise InvalidVideoError(f"it has more than {MAX_FRAMES:,} frames")
            video.append(frame)
    return {"n_frames": video.n_frames, "duration_s": round(video.n_frames / fps, 3)}
