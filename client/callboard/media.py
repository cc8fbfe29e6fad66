"""Histograms, images and tables that a script logs beside numbers, as `run.log({"actions": Histogram(a)})`.

Whatever they are created from, creating one never fails: what cannot be kept is counted when it is logged.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from callboard.cleaning import as_number, as_text, kind_of
from callboard.files import SentFile
from callboard.limits import (
    MAX_BINS,
    MAX_CAPTION,
    MAX_CELL,
    MAX_COLUMN,
    MAX_IMAGE_PIXELS,
    MAX_MEDIA_BYTES,
    MAX_TABLE_COLUMNS,
    MAX_TABLE_ROWS,
)
from callboard.rows import clean, dumps

OnChange = Callable[[str, str], object]

IMAGE_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF")
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""Of PNG, by number of channels."""


class Histogram:
    """How values are distributed: at most 64 bins, drawn over training and by themselves.

    Of whole numbers with a range below 64, such as actions, each number has a bin of its own.
    """

    def __init__(self, values: Any = None, *, counts: Any = None, edges: Any = None) -> None:
        """Of values, or of bins that are counted already.

        Args:
            values: an array, tensor or list of numbers of any shape. Those that are not finite are left out.
            counts: values in each bin.
            edges: edges of the bins, increasing: one more than `counts`. More than 64 bins are joined.
        """
        self._values = values
        self._counts = counts
        self._edges = edges

    @classmethod
    def of_buckets(cls, low: float, high: float, limits: Any, counts: Any) -> Histogram:
        """Of values from `low` to `high` as TensorBoard counts them: up to each limit."""
        limits, counts = _floats(limits), _floats(counts)
        if limits.size != counts.size or not counts.any():
            return cls(counts=counts, edges=limits)
        filled = np.flatnonzero(counts)
        first, last = filled[0], filled[-1]
        edges = np.concatenate([limits[first - 1 : first] if first else [low], limits[first : last + 1]])
        # The outermost limits may be those of floats.
        edges[0], edges[-1] = max(edges[0], min(low, edges[1])), min(edges[-1], max(high, edges[-2]))
        if edges[0] == edges[-1]:
            return cls(counts=[counts.sum()], edges=_around(float(edges[0]), float(edges[0])))
        grows = np.concatenate([np.diff(edges) > 0, [True]])
        return cls(counts=counts[first : last + 1][grows[:-1]], edges=edges[grows])

    def bins(self, on_change: OnChange = lambda what, details: None) -> tuple[list[float], list[float]]:
        """Edges and counts.

        Raises:
            ValueError: there is no finite value, or the bins are not those of a histogram.
        """
        if self._counts is not None or self._edges is not None:
            return _joined(_floats(self._edges), _floats(self._counts))
        values = array_of(self._values).ravel()
        if values.size and values.dtype.kind not in "biuf":
            values = values.astype(np.float64)
        finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if finite.size < values.size:
            on_change("a histogram of values that are not finite: they are left out", "")
        if finite.size == 0:
            raise ValueError("a histogram needs at least one finite value")
        if finite.dtype.kind != "f":
            low, high = int(finite.min()), int(finite.max())
            if high - low < MAX_BINS and abs(low) < 2**40:
                offsets = finite.astype(np.int64) - low
                counts = np.bincount(offsets, minlength=high - low + 1)
                return [low - 0.5 + k for k in range(len(counts) + 1)], [*map(float, counts)]
        return _of_floats(finite.astype(np.float64))


def _around(low: float, high: float) -> tuple[float, float] | None:
    """Edges around values whose range floats cannot divide into bins; None for others."""
    least = max(max(abs(low), abs(high)) * 1e-12, 1e-300) * MAX_BINS
    if high - low >= least:
        return None
    middle, half = (low + high) / 2, max(least, 1e-12)
    return middle - half, middle + half


def _of_floats(values: Any) -> tuple[list[float], list[float]]:
    low, high = float(values.min()), float(values.max())
    # Of equal values, and of those whose range or bins no float can express.
    if not math.isfinite(high - low):
        raise ValueError("a histogram needs values whose range is finite")
    if (bounds := _around(low, high)) is not None:
        return [*bounds], [float(values.size)]
    counts, edges = np.histogram(values, MAX_BINS, (low, high))
    return [*map(float, edges)], [*map(float, counts)]


def _joined(edges: Any, counts: Any) -> tuple[list[float], list[float]]:
    """Bins that are counted already, as at most 64; a bin that is divided has its values evenly."""
    if edges.size != counts.size + 1 or counts.size == 0:
        raise ValueError(f"edges: must be one more than counts: got {edges.size:,} and {counts.size:,}")
    if not (np.isfinite(edges).all() and np.isfinite(counts).all() and (np.diff(edges) > 0).all()):
        raise ValueError("edges: must be finite and increase, and counts must be finite")
    if (counts < 0).any() or not counts.any():
        raise ValueError("counts: must not be negative, and at least one must be above 0")
    if counts.size > MAX_BINS:
        filled = np.flatnonzero(counts)
        new_edges = np.linspace(edges[filled[0]], edges[filled[-1] + 1], MAX_BINS + 1)
        below = np.interp(new_edges, edges, np.concatenate([[0.0], np.cumsum(counts)]))
        edges, counts = new_edges, np.maximum(np.diff(below), 0.0)
    return [*map(float, edges)], [*map(float, counts)]


class Image:
    """An image, shown at its step on the run's page."""

    kind = "image"

    def __init__(self, data: Any, caption: str | None = None, *, layout: str | None = None) -> None:
        """Nothing is read before it is logged.

        Args:
            data: pixels, (H, W), (H, W, C) or (C, H, W), as uint8 or as floats from 0 to 1. C is 1 or 3, or 4
                with transparency; other numbers of channels before H, such as stacked frames, are shown side
                by side. Or a PIL image, a Matplotlib figure, or the path of a PNG, JPEG or WebP file. At most
                4,096 pixels a side and 2 MiB as a file: more pixels are left out.
            caption: a line below it.
            layout: the order of the axes of pixels, such as `CHW`, or `NHWC` for several images side by side;
                default: by their shape.
        """
        self.data = data
        self.caption = caption
        self.layout = layout

    def sent(self, on_change: OnChange = lambda what, details: None) -> SentFile:
        """The file to send.

        Raises:
            ValueError: it is no image.
        """
        return _sent(self.kind, self._content(on_change), self.caption)

    def _content(self, on_change: OnChange) -> bytes:
        data = self.data
        if isinstance(data, (str, os.PathLike)):
            return _image_file(Path(data))
        content = _drawn(data)
        if content is not None and len(content) <= MAX_MEDIA_BYTES:
            return content
        return _fitting(pixels_of(self.pixels(), self.layout), on_change)

    def pixels(self) -> Any:
        """The pixels, if it is neither a path nor drawn by a library."""
        return self.data


def _drawn(data: Any) -> bytes | None:
    """The PNG of a Matplotlib figure or of a PIL image; None if it is neither."""
    buffer = io.BytesIO()
    if hasattr(data, "savefig"):
        data.savefig(buffer, format="png")
    elif hasattr(data, "save") and hasattr(data, "convert"):
        (data if data.mode in ("1", "L", "LA", "P", "RGB", "RGBA") else data.convert("RGB")).save(
            buffer, "PNG"
        )
        if max(data.size) > MAX_IMAGE_PIXELS:
            return None
    else:
        return None
    return buffer.getvalue()


def _fitting(pixels_HWC: Any, on_change: OnChange) -> bytes:
    """The PNG of as many of the pixels as are kept."""
    every = -(-max(pixels_HWC.shape[:2]) // MAX_IMAGE_PIXELS)
    while True:
        content = png_of(pixels_HWC[::every, ::every])
        if len(content) <= MAX_MEDIA_BYTES:
            break
        every += 1
    if every > 1:
        size = f"{pixels_HWC.shape[1]} x {pixels_HWC.shape[0]}"
        on_change("an image that is too large: pixels are left out", f"one of {every} a side, of {size}")
    return content


def _image_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_MEDIA_BYTES:
            raise ValueError(
                f"{path} must have at most {MAX_MEDIA_BYTES:,} bytes: it has {path.stat().st_size:,}"
            )
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not content.startswith(IMAGE_SIGNATURES):
        raise ValueError(f"{path} is no image: it must be a PNG, JPEG or WebP file")
    return content


def pixels_of(data: Any, layout: str | None = None) -> Any:
    """Pixels (H, W, C) as uint8, with 1 to 4 channels.

    Args:
        data: an array or tensor; floats are from 0 to 1, other numbers from 0 to 255.
        layout: the order of its axes, of `NHWC`; default: by its shape. Several images are side by side.

    Raises:
        ValueError: it is no image.
    """
    array = array_of(data)
    given = f"{array.dtype} of the shape {array.shape}"
    if array.dtype == bool:
        array = array.astype(np.uint8) * 255
    if array.dtype.kind not in "iuf" or array.size == 0:
        raise ValueError(f"must be pixels: got {given}")
    if layout is None:
        layout = _layout_of(array.shape)
    if layout is None or len(layout) != array.ndim or not {"H", "W"} <= set(layout) <= set("NHWC"):
        raise ValueError(f"must be pixels of the shape (H, W), (H, W, C) or (C, H, W): got {given}")
    wanted = [axis for axis in "NHWC" if axis in layout]
    array = array.transpose([layout.index(axis) for axis in wanted])
    if "C" not in wanted:
        array = array[..., None]
    if "N" not in wanted:
        array = array[None]
    N, H, W, C = array.shape
    if C not in _COLOUR_TYPES:  # such as the last frames, as an agent sees them
        array = array.transpose(0, 3, 1, 2).reshape(N * C, H, W, 1)
        N, C = N * C, 1
    row_HWC = array.transpose(1, 0, 2, 3).reshape(H, N * W, C)
    if row_HWC.dtype.kind == "f":
        row_HWC = np.clip(np.nan_to_num(row_HWC), 0.0, 1.0) * 255.0 + 0.5
    return np.clip(row_HWC, 0, 255).astype(np.uint8)


def _layout_of(shape: tuple[int, ...]) -> str | None:
    if len(shape) == 2:
        return "HW"
    if len(shape) != 3:
        return None
    # (4, H, W) are frames rather than transparency, which comes last.
    if shape[2] in (1, 3, 4):
        return "HWC"
    return "CHW" if shape[0] in (1, 3) else "NHW" if shape[0] < min(shape[1:]) else None


def png_of(pixels_HWC: Any) -> bytes:
    """Pixels of 1 to 4 channels as a PNG file."""
    H, W, C = pixels_HWC.shape
    lines = np.zeros((H, 1 + W * C), np.uint8)  # each line begins with its filter, which is none
    lines[:, 1:] = pixels_HWC.reshape(H, W * C)
    header = struct.pack(">IIBBBBB", W, H, 8, _COLOUR_TYPES[C], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )
    return IMAGE_SIGNATURES[0] + b"".join(chunks)


class Table:
    """Rows of cells, shown at their step on the run's page."""

    kind = "table"

    def __init__(self, columns: Any = None, rows: Any = None) -> None:
        """Cells are numbers, texts, booleans or None; others are shown as text.

        Args:
            columns: names of at most 50 columns; or a DataFrame, without `rows`; or a mapping of columns.
            rows: at most 1,000 lists with a cell for each column.
        """
        if rows is None and hasattr(columns, "itertuples"):  # of pandas
            rows = columns.itertuples(index=False, name=None)
            columns = columns.columns
        elif rows is None and isinstance(columns, Mapping):
            rows = zip(*columns.values())
            columns = columns.keys()
        self.columns: list[Any] = _listed(columns)
        self.rows: list[Any] = [] if rows is None else _listed(rows)

    def add(self, *cells: Any) -> None:
        """Add a row."""
        self.rows.append(cells)

    def sent(self, on_change: OnChange = lambda what, details: None) -> SentFile:
        """The file to send.

        Raises:
            ValueError: it has no columns, or a row of another length.
        """
        columns = [clean(as_text(name), MAX_COLUMN) for name in self.columns[:MAX_TABLE_COLUMNS]]
        if not columns:
            raise ValueError("a table needs at least one column")
        rows = []
        for number, row in enumerate(self.rows[:MAX_TABLE_ROWS]):
            cells = _listed(row)
            if len(cells) != len(self.columns):
                n = len(self.columns)
                raise ValueError(f"row {number} has {len(cells)} cells, and there are {n} columns")
            rows.append([_cell(cell) for cell in cells[:MAX_TABLE_COLUMNS]])
        n_rows = len(rows)
        while len(content := dumps({"columns": columns, "rows": rows[:n_rows]})) > MAX_MEDIA_BYTES:
            n_rows //= 2
        if n_rows < len(self.rows) or len(columns) < len(self.columns):
            size = f"{len(self.rows):,} rows of {len(self.columns):,} columns"
            on_change("a table that is too large: it is cut", f"{size} to {n_rows:,} of {len(columns):,}")
        return _sent(self.kind, content, None)


Media = (Histogram, Image, Table)


def array_of(data: Any) -> Any:
    """An array of anything that NumPy reads, tensors of torch among them."""
    if hasattr(data, "detach"):
        data = data.detach()
        data = (data.float() if "bfloat16" in str(data.dtype) else data).cpu()
    return np.asarray(data)


def _floats(values: Any) -> Any:
    return array_of([] if values is None else values).astype(np.float64).ravel()


def _listed(values: Any) -> list[Any]:
    if values is None:
        return []
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, Iterable)):
        return [values]
    return list(values)


def _cell(value: Any) -> Any:
    """A cell as JSON."""
    if value is None or isinstance(value, (bool, str)):
        return clean(value, MAX_CELL) if isinstance(value, str) else value
    if isinstance(value, (bytes, bytearray, list, tuple, dict)):
        return clean(as_text(value), MAX_CELL)
    number = as_number(value).value
    if number is None:
        return clean(as_text(value), MAX_CELL)
    if not math.isfinite(number):
        return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
    return (
        int(number) if number == int(number) and abs(number) < 2**53 and kind_of(value) != "float" else number
    )


def _sent(kind: str, content: bytes, caption: Any) -> SentFile:
    fields: dict[str, Any] = {"kind": kind}
    if caption:
        fields["caption"] = clean(as_text(caption), MAX_CAPTION)
    return SentFile(len(content), lambda path: path.write_bytes(content), fields)
