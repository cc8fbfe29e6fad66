"""Lossless compression of columns of numbers.

A column becomes 64-bit codes: integers as they are; floats as integers if all are whole (returns, counts),
otherwise as the bits of 32-bit floats if these are exact, otherwise as whole millionths if all are such
(times), otherwise as their own bits. The codes, or their differences if these have a smaller range, are
stored relative to the minimum. Bytes that are zero in all of them are dropped; the others are stored in
planes (all first bytes, all second bytes, ...) and deflated if that makes them smaller. Each column can be
read without the others.

A few rows, such as the last second of a live run, are stored uncompressed: compression would cost more than
it saves.

Not a library's format: Parquet takes 1.3 to 1.7 times the bytes of a closed chunk and 3 to 18 times as long
to read two columns, Arrow's IPC format more bytes still (`python -m benchmarks.libraries`, RESULTS.md).
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from backend.specs.events import PointsEvent
from backend.statistics.columns import Array, Columns

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
"""Columns of a point; `revision` is the run's revision at the commit of the point."""

X_COLUMNS = ("agent_steps", "frames", "wall_time_s", "episodes")
"""Columns that can be the x axis."""

_PLAIN_ROWS = 64
_PLAIN, _PACKED = 0, 1
_HEADER = struct.Struct("<BI")
_COLUMN = struct.Struct("<BBBqqI")
_INTEGER, _WHOLE, _MILLIONTH, _FLOAT32, _FLOAT64 = range(5)
_DELTA, _DEFLATED = 1, 2
_DEFLATE_LEVEL = 1
_MAX_WHOLE = 2.0**53


def encode(columns: Mapping[str, Array], dtypes: Mapping[str, str] = POINT_DTYPES) -> bytes:
    """Encode `columns`, which are those named in `dtypes`, each `<i8` or `<f8`."""
    arrays = [np.ascontiguousarray(columns[name], dtype) for name, dtype in dtypes.items()]
    n_rows = len(arrays[0])
    if n_rows <= _PLAIN_ROWS:
        return b"".join([_HEADER.pack(_PLAIN, n_rows), *(array.tobytes() for array in arrays)])
    return b"".join([_HEADER.pack(_PACKED, n_rows), *(_pack(array) for array in arrays)])


def decode(
    data: bytes, names: Iterable[str] | None = None, dtypes: Mapping[str, str] = POINT_DTYPES
) -> Columns:
    """The columns `names` (default: all) of the result of `encode` with the same `dtypes`."""
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
    """The rows of `parts`, concatenated. All have the same columns; there is at least one part."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def select_rows(columns: Columns, rows: slice | Array) -> Columns:
    """A selection of rows of `columns`: a slice, a mask or row numbers."""
    return {name: array[rows] for name, array in columns.items()}


def n_rows(columns: Columns) -> int:
    """The number of rows of `columns`."""
    return len(next(iter(columns.values())))


def by_series(points: Sequence[PointsEvent]) -> dict[tuple[str, str], Columns]:
    """The points by metric and source, without `revision` and without empty series.

    Raises:
        ValueError: columns of different lengths.
    """
    parts: dict[tuple[str, str], list[Columns]] = {}
    for batch in points:
        columns = {
            name: np.array(getattr(batch, name), dtype)
            for name, dtype in POINT_DTYPES.items()
            if name != "revision"
        }
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"{batch.metric}: columns of {sorted(lengths)} rows")
        if n_rows(columns):
            parts.setdefault((batch.metric, batch.source), []).append(columns)
    return {key: joined(columns) for key, columns in parts.items()}


def _same_bits(array: Array, other: Array) -> bool:
    # Not by value: -0.0 and NaN must be restored exactly.
    return bool(np.array_equal(array.view("<i8"), other.view("<i8")))


def _scaled(array: Array, scale: float) -> Array | None:
    """`array * scale` as integers, if dividing them restores every bit; otherwise None."""
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
    """The minimum, the codes relative to it (unsigned), and the number of bytes of the largest."""
    minimum = codes.min()
    relative = (codes - minimum).view("<u8")  # modulo 2^64: correct even if the range overflows
    return int(minimum), relative, (int(relative.max()).bit_length() + 7) // 8


def _pack(array: Array) -> bytes:
    kind, codes = _codes(array)
    flags, first = 0, 0
    minimum, relative, width = _relative(codes)
    if width:
        delta_minimum, delta, delta_width = _relative(np.diff(codes))
        if delta_width < width or (delta_width == width and delta.max() < relative.max()):
            flags, first = _DELTA, int(codes[0])
            minimum, relative, width = delta_minimum, delta, delta_width
    payload = relative.view("u1").reshape(-1, 8)[:, :width].T.tobytes()
    deflated = zlib.compress(payload, _DEFLATE_LEVEL)
    if len(deflated) < len(payload):
        flags, payload = flags | _DEFLATED, deflated
    return _COLUMN.pack(kind, flags, width, first, minimum, len(payload)) + payload


def _unpack(data: bytes, at: int, n_rows: int) -> Array:
    kind, flags, width, first, minimum, size = _COLUMN.unpack_from(data, at)
    at += _COLUMN.size
    payload: bytes | memoryview = memoryview(data)[at : at + size]
    if flags & _DEFLATED:
        payload = zlib.decompress(payload)
    n_codes = n_rows - 1 if flags & _DELTA else n_rows
    planes = np.frombuffer(payload, "u1").reshape(width, n_codes)
    spread = np.zeros((n_codes, 8), "u1")
    spread[:, :width] = planes.T
    codes = spread.view("<i8").reshape(n_codes)
    codes += minimum
    if flags & _DELTA:
        whole = np.empty(n_rows, "<i8")
        whole[0] = first
        np.cumsum(codes, out=whole[1:])
        whole[1:] += first
        codes = whole
    return _from_codes(kind, codes)
