"""Images and tables that scripts send: what they are, read from their first bytes or within bounds.

An image is never decoded here: its header says how large it is, and browsers decode it.
"""

import struct
from typing import Annotated, NamedTuple, Self

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from backend.http.json_bounds import excess_of
from backend.platform.errors import Invalid
from backend.platform.text import Text
from backend.specs.fields import Strict

MAX_IMAGE_PIXELS = 4_096
"""Of a side."""
MAX_TABLE_ROWS = 1_000
MAX_TABLE_COLUMNS = 50
MAX_CELL = 1_000
MAX_COLUMN = 200
_MAX_VALUES = MAX_TABLE_ROWS * (MAX_TABLE_COLUMNS + 1) + 2 * MAX_TABLE_COLUMNS


class Shape(NamedTuple):
    """What a file is."""

    media_type: str
    width: int
    """In pixels, or columns."""
    height: int
    """In pixels, or rows."""


Cell = (
    Annotated[Text, StringConstraints(max_length=MAX_CELL)]
    | bool
    | int
    | Annotated[float, Field(allow_inf_nan=False)]
    | None
)


class Table(Strict):
    """The file of a table."""

    columns: list[Annotated[Text, StringConstraints(max_length=MAX_COLUMN)]] = Field(
        min_length=1, max_length=MAX_TABLE_COLUMNS
    )
    rows: list[Annotated[list[Cell], Field(max_length=MAX_TABLE_COLUMNS)]] = Field(max_length=MAX_TABLE_ROWS)

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {number} has {len(row)} cells, and there are {len(self.columns)} columns"
                )
        return self


_TABLE = TypeAdapter(Table)


def shape_of(kind: str, content: bytes) -> Shape:
    """What the file of an image or of a table is.

    Raises:
        Invalid: it is nothing that is kept.
    """
    return _table(content) if kind == "table" else _image(content)


def _table(content: bytes) -> Shape:
    excess = excess_of(content, _MAX_VALUES)
    if excess is not None:
        raise Invalid.field("upload", f"is a table that {excess}")
    try:
        table = _TABLE.validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise Invalid.field("upload", f"is no table: {where}: {first['msg']}") from None
    return Shape("application/json", len(table.columns), len(table.rows))


def _image(content: bytes) -> Shape:
    try:
        shape = _png(content) or _jpeg(content) or _webp(content)
    except (struct.error, IndexError):
        shape = None
    if shape is None:
        raise Invalid.field("upload", "is no image: it must be a PNG, JPEG or WebP file")
    if not 1 <= min(shape[1:]) <= max(shape[1:]) <= MAX_IMAGE_PIXELS:
        message = (
            f"is an image of {shape.width} x {shape.height} pixels: a side has 1 to {MAX_IMAGE_PIXELS:,}"
        )
        raise Invalid.field("upload", message)
    return shape


def _png(content: bytes) -> Shape | None:
    if content[:8] != b"\x89PNG\r\n\x1a\n" or content[12:16] != b"IHDR":
        return None
    return Shape("image/png", *struct.unpack(">II", content[16:24]))


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of JPEG's segments that have the size."""
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers without a segment."""


def _jpeg(content: bytes) -> Shape | None:
    if content[:3] != b"\xff\xd8\xff":
        return None
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return Shape("image/jpeg", width, height)
        if marker == 0xFF:
            at += 1
        elif marker in _ALONE:
            at += 2
        else:
            at += 2 + max(2, struct.unpack(">H", content[at + 2 : at + 4])[0])
    return None


def _webp(content: bytes) -> Shape | None:
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP" or len(content) < 30:
        return None
    form = content[12:16]
    if form == b"VP8X":
        return Shape("image/webp", *(int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27)))
    if form == b"VP8L" and content[20] == 0x2F:
        bits = int.from_bytes(content[21:25], "little")
        return Shape("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if form == b"VP8 " and content[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", content[26:30])
        return Shape("image/webp", width & 0x3FFF, height & 0x3FFF)
    return None
