"""CRC-32C with the mask of TFRecord, which TensorBoard's event files and W&B's logs have."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


def _table() -> Words:
    table = np.arange(256, dtype="<u4")
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype("<u4")
    return table


TABLE = _table()
"""Of CRC-32C, by byte."""


def crc32c(rows: Bytes) -> Words:
    """The checksum of each row of a byte matrix."""
    crc = np.full(len(rows), 0xFFFFFFFF, "<u4")
    for column in rows.T:
        crc = TABLE[(crc ^ column) & 0xFF] ^ (crc >> 8)
    return ~crc


def masked(crc: Any) -> Bytes:
    """Checksums with the mask, as they are in a file."""
    rotated = (crc >> 15) | (crc << 17)
    words = np.ascontiguousarray((rotated + np.uint32(0xA282EAD8)).astype("<u4"))
    return words.view("u1").reshape(len(words), -1)
