"""Columns of numbers to few bytes and back, without loss.

A column becomes 64-bit codes: integers as they are; floats as integers where they are whole (returns,
counts) or whole millionths (times), else as the bits of a 32-bit float where that holds them, else as
their own bits. The codes, or their differences where these span less, are taken relative to the least
one; the bytes that all of them leave zero are dropped, the others stored plane by plane (all first bytes,
all second bytes, ...) and deflated where that pays. Each column can be read without the others.

A few rows, such as a live run's last second, are stored as they are: packing costs more than it saves.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Columns = dict[str, Array]
"""Arrays of equal length by name."""

CHUNK_ROWS = 4096
"""Rows of a closed chunk of points."""

POINT_DTYPES: dict[str, str] = {
    "agent_steps": "<i8",
    "frames": "<i8",
    "wall_time_s": "<f8",
    "episodes": "<i8",
    "value": "<f8",
    "revision": "<i8",
}
"""What is kept of a point; `revision` is the run's when the point was committed."""

X_COLUMNS = ("agent_steps", "frames", "wall_time_s", "episodes")
"""What a point can be drawn over."""

_PLAIN_ROWS = 64
_PLAIN, _PACKED = 0, 1
_HEADER = struct.Struct("<BI")
_COLUMN = struct.Struct("<BBBqqI")
_INTEGER, _WHOLE, _MILLIONTH, _FLOAT32, _FLOAT64 = range(5)
_DELTA, _DEFLATED = 1, 2
_DEFLATE_LEVEL = 1
_MAX_WHOLE = 2.0**53


def encode(columns: Mapping[str, Array], dtypes: Mapping[str, str] = POINT_DTYPES) -> bytes:
    """The bytes of `columns`, which are those named in `dtypes`, each `<i8` or `<f8`."""
    arrays = [np.ascontiguousarray(columns[name], dtype) for name, dtype in dtypes.items()]
    n_rows = len(arrays[0])
    if n_rows <= _PLAIN_ROWS:
        return b"".join([_HEADER.pack(_PLAIN, n_rows), *(array.tobytes() for array in arrays)])
    return b"".join([_HEADER.pack(_PACKED, n_rows), *(_pack(array) for array in arrays)])


def decode(
    data: bytes, names: Iterable[str] | None = None, dtypes: Mapping[str, str] = POINT_DTYPES
) -> Columns:
    """The columns `names` (all by default) of what `encode` made with the same `dtypes`."""
    wanted = set(dtypes if names is None else names)
    form, n_rows = _HEADER.unpack_from(data)
    at = _HEADER.size
    columns: Columns = {}
    for name, dtype in dtypes.items():
        if form == _PLAIN:
            size = 8 * n_rows
            if name in wanted:
                columns[name] = np.frombuffer(data, dtype, n_rows, at)
        else:
            size = _COLUMN.size + _COLUMN.unpack_from(data, at)[-1]
            if name in wanted:
                columns[name] = _unpack(data, at, n_rows)
        at += size
    return columns


def empty(names: Iterable[str] = POINT_DTYPES, dtypes: Mapping[str, str] = POINT_DTYPES) -> Columns:
    """Columns without rows."""
    return {name: np.empty(0, dtypes[name]) for name in names}


def joined(parts: Sequence[Columns]) -> Columns:
    """The rows of `parts`, one after the other. All have the same columns; there is at least one."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def taken(columns: Columns, rows: slice | Array) -> Columns:
    """Some rows of `columns`: a slice, a mask or row numbers."""
    return {name: array[rows] for name, array in columns.items()}


def n_rows(columns: Columns) -> int:
    """How many rows `columns` have."""
    return len(next(iter(columns.values())))


def _same_bits(one: Array, other: Array) -> bool:
    # Not by value: -0.0 and NaN have to come back as they were.
    return bool(np.array_equal(one.view("<i8"), other.view("<i8")))


def _scaled(array: Array, scale: float) -> Array | None:
    """`array * scale` as integers, where dividing them gives back every bit."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.rint(array * scale)
        if np.abs(scaled).max() < _MAX_WHOLE:
            codes = scaled.astype("<i8")
            if _same_bits(codes / scale, array):
                return codes
    return None


def _codes(array: Array) -> tuple[int, Array]:
    if array.dtype.kind == "i":
        return _INTEGER, array
    whole = _scaled(array, 1.0)
    if whole is not None:
        return _WHOLE, whole
    with np.errstate(invalid="ignore", over="ignore"):
        single = array.astype("<f4")
    if _same_bits(single.astype("<f8"), array):
        return _FLOAT32, single.view("<u4").astype("<i8")
    millionths = _scaled(array, 1e6)
    if millionths is not None:
        return _MILLIONTH, millionths
    return _FLOAT64, array.view("<i8")


def _from_codes(kind: int, codes: Array) -> Array:
    if kind == _INTEGER:
        return codes
    if kind == _WHOLE:
        return codes.astype("<f8")
    if kind == _MILLIONTH:
        return codes / 1e6
    if kind == _FLOAT32:
        return codes.astype("<u4").view("<f4").astype("<f8")
    return codes.view("<f8")


def _relative(codes: Array) -> tuple[int, Array, int]:
    """The least code, the codes relative to it (unsigned), and how many bytes the largest needs."""
    least = codes.min()
    relative = (codes - least).view("<u8")  # modulo 2^64: right even where the span overflows
    return int(least), relative, (int(relative.max()).bit_length() + 7) // 8


def _pack(array: Array) -> bytes:
    kind, codes = _codes(array)
    flags, first = 0, 0
    least, relative, width = _relative(codes)
    if width:
        delta_least, delta, delta_width = _relative(np.diff(codes))
        if delta_width < width or (delta_width == width and delta.max() < relative.max()):
            flags, first = _DELTA, int(codes[0])
            least, relative, width = delta_least, delta, delta_width
    payload = relative.view("u1").reshape(-1, 8)[:, :width].T.tobytes()
    deflated = zlib.compress(payload, _DEFLATE_LEVEL)
    if len(deflated) < len(payload):
        flags, payload = flags | _DEFLATED, deflated
    return _COLUMN.pack(kind, flags, width, first, least, len(payload)) + payload


def _unpack(data: bytes, at: int, n_rows: int) -> Array:
    kind, flags, width, first, least, size = _COLUMN.unpack_from(data, at)
    at += _COLUMN.size
    payload: bytes | memoryview = memoryview(data)[at : at + size]
    if flags & _DEFLATED:
        payload = zlib.decompress(payload)
    n_codes = n_rows - 1 if flags & _DELTA else n_rows
    planes = np.frombuffer(payload, "u1").reshape(width, n_codes)
    spread = np.zeros((n_codes, 8), "u1")
    spread[:, :width] = planes.T
    codes = spread.view("<i8").reshape(n_codes)
    codes += least
    if flags & _DELTA:
        whole = np.empty(n_rows, "<i8")
        whole[0] = first
        np.cumsum(codes, out=whole[1:])
        whole[1:] += first
        codes = whole
    return _from_codes(kind, codes)
