"""TensorBoard's event files, written one batch of scalars at a time.

A file is a list of records: length (8 bytes), its checksum (4), data, the data's checksum (4), all little
endian; the data is a `tensorflow.Event` message. Checksums are CRC-32C with TFRecord's mask.

Not TensorBoard's own writer: it takes 25 times as long (`python -m benchmarks.libraries`), and a web host
would need TensorBoard. Tests read the files with TensorBoard.
"""

import struct

import numpy as np
import numpy.typing as npt

from backend.statistics.columns import Array

Bytes = npt.NDArray[np.uint8]

_POLYNOMIAL = 0x82F63B78
_EVENT_WALL_TIME = 0x09
"""Field 1, 8 bytes. The other tags in the same way: number << 3 | kind."""
_EVENT_STEP = 0x10
_EVENT_FILE_VERSION = 0x1A
_EVENT_SUMMARY = 0x2A
_SUMMARY_VALUE = 0x0A
_VALUE_TAG = 0x0A
_VALUE_SIMPLE = 0x15
_VALUE_TENSOR = 0x42
_VALUE_METADATA = 0x4A
_TENSOR_OF_STRINGS = b"\x08\x07"
_TENSOR_STRING = 0x42
_METADATA_PLUGIN = 0x0A
_PLUGIN_NAME = 0x0A
_METADATA_OF_TENSORS = b"\x20\x02"


def header(wall_time: float) -> bytes:
    """The first record of a file."""
    version = b"brain.Event:2"
    data = struct.pack("<Bd", _EVENT_WALL_TIME, wall_time) + _field(_EVENT_FILE_VERSION, version)
    return record(data)


def record(data: bytes) -> bytes:
    """A message, framed as a record."""
    return _records(np.frombuffer(data, "u1")[None])


def text(tag: str, wall_time: float, markdown: str) -> bytes:
    """The record of a text at step 0.

    Args:
        tag: name of the text.
        wall_time: Unix time in seconds.
        markdown: the text.
    """
    plugin = _field(_METADATA_PLUGIN, _field(_PLUGIN_NAME, b"text")) + _METADATA_OF_TENSORS
    tensor = _TENSOR_OF_STRINGS + _field(_TENSOR_STRING, markdown.encode())
    value = _field(_VALUE_TAG, tag.encode()) + _field(_VALUE_TENSOR, tensor) + _field(_VALUE_METADATA, plugin)
    summary = _field(_EVENT_SUMMARY, _field(_SUMMARY_VALUE, value))
    data = struct.pack("<Bd", _EVENT_WALL_TIME, wall_time) + bytes([_EVENT_STEP, 0]) + summary
    return _records(np.frombuffer(data, "u1")[None])


def scalars(tag: str, wall_times: Array, steps: Array, values: Array) -> bytes:
    """One record per scalar.

    Args:
        tag: the metric's name.
        wall_times: Unix times in seconds, f8.
        steps: i8, not negative.
        values: f8; the format stores 32 bits.
    """
    n = len(values)
    name = _field(_VALUE_TAG, tag.encode())
    with np.errstate(over="ignore"):
        simple = _rows_of(values.astype("<f4"))
    value_size = len(name) + 1 + 4
    inside = _tagged(_SUMMARY_VALUE, value_size)
    parts = [
        _repeated(bytes([_EVENT_WALL_TIME]), n),
        _rows_of(wall_times.astype("<f8")),
        _repeated(bytes([_EVENT_STEP]), n),
        _varints(steps),
        _repeated(_tagged(_EVENT_SUMMARY, len(inside) + value_size) + inside + name, n),
        _repeated(bytes([_VALUE_SIMPLE]), n),
        simple,
    ]
    return _records(np.hstack(parts))


def crc32c(rows: Bytes) -> Array:
    """The checksum of each row of a byte matrix."""
    crc = np.full(len(rows), 0xFFFFFFFF, "<u4")
    for column in rows.T:
        crc = TABLE[(crc ^ column) & 0xFF] ^ (crc >> 8)
    return ~crc


def _crc_table() -> Array:
    table = np.arange(256, dtype="<u4")
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype("<u4")
    return table


TABLE = _crc_table()
"""Of CRC-32C, by byte."""


def masked(crc: Array) -> Bytes:
    """Checksums with TFRecord's mask, as they are in the file."""
    rotated = (crc >> 15) | (crc << 17)
    return _rows_of((rotated + np.uint32(0xA282EAD8)).astype("<u4"))


def _records(data: Bytes) -> bytes:
    """Rows of equal length, each framed as a record."""
    n, size = data.shape
    length = _repeated(struct.pack("<Q", size), n)
    return np.hstack([length, masked(crc32c(length)), data, masked(crc32c(data))]).tobytes()


def _field(tag: int, data: bytes) -> bytes:
    return _tagged(tag, len(data)) + data


def _tagged(tag: int, size: int) -> bytes:
    return bytes([tag]) + _varints(np.array([size])).tobytes()


def _varints(numbers: Array) -> Bytes:
    """Seven bits per byte, the high bit set on all but the last.

    All rows get as many bytes as the largest needs: readers accept leading zeros, and rows of equal length
    can be written together.
    """
    width = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    shifted = numbers.astype("<u8")[:, None] >> np.arange(0, 7 * width, 7, dtype="<u8")
    septets = (shifted & np.uint64(0x7F)).astype("u1")
    septets[:, :-1] |= 0x80
    return septets


def _rows_of(numbers: Array) -> Bytes:
    return np.ascontiguousarray(numbers).view("u1").reshape(len(numbers), -1)


def _repeated(data: bytes, n: int) -> Bytes:
    return np.tile(np.frombuffer(data, "u1"), (n, 1))
