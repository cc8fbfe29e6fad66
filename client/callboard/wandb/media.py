"""Values of W&B's own types. Histograms, images, tables and videos are kept; the others are counted when they
are logged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from callboard.files import frames_of_videos
from callboard.media import Histogram as CallboardHistogram
from callboard.media import Image as CallboardImage
from callboard.media import Table as CallboardTable
from callboard.media import array_of
from callboard.wandb.active import ACTIVE, speaker
from callboard.wandb.errors import Error, UsageError

_DEFAULT_FPS = 4.0
_BINS = 64


class NotKept:
    """A value that is not kept. It has every method, each of which does nothing and returns such a value."""

    kind = "values"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Accept anything."""

    def __getattr__(self, name: str) -> Any:
        """A method that does nothing.

        Raises:
            AttributeError: the name is one of Python's own.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: NotKept()

    def __call__(self, *arguments: Any, **options: Any) -> NotKept:
        """Do nothing."""
        return NotKept()

    def __iter__(self) -> Iterator[Any]:
        """Nothing."""
        return iter(())

    def __len__(self) -> int:
        """0."""
        return 0

    def __bool__(self) -> bool:
        """True: it is there."""
        return True

    def __getitem__(self, key: Any) -> NotKept:
        """Such a value."""
        return NotKept()

    def __setitem__(self, key: Any, value: Any) -> None:
        """Do nothing."""

    def __enter__(self) -> NotKept:
        """Return itself."""
        return self

    def __exit__(self, *arguments: object) -> None:
        """Do nothing."""


def _of_kind(name: str, kind: str) -> type[NotKept]:
    return type(name, (NotKept,), {"kind": kind, "__module__": __name__, "__doc__": f"{kind}, not kept."})


Audio = _of_kind("Audio", "sounds")
Html = _of_kind("Html", "pages")
Object3D = _of_kind("Object3D", "point clouds")
Molecule = _of_kind("Molecule", "molecules")
Graph = _of_kind("Graph", "graphs")
Plotly = _of_kind("Plotly", "plots")
Artifact = _of_kind("Artifact", "artifacts")


class AlertLevel(Enum):
    """Levels of alerts."""

    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class _Plots:
    """W&B's functions for plots, which are not kept."""

    def __getattr__(self, name: str) -> Any:
        """A function whose plot is not kept.

        Raises:
            AttributeError: the name is one of Python's own.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return Plotly


plot = _Plots()

_stubs: dict[str, Any] = {}


def stub(name: str) -> Any:
    """A public name of W&B's that has no meaning here: a class, or a function if it begins with a small
    letter. It says so when it is called; if the table refuses it, it ends a script that has no run yet.

    Raises:
        AttributeError: the name is one of Python's own.
    """
    last = name.rpartition(".")[2]
    if last.startswith("__"):
        raise AttributeError(name)

    def use() -> None:
        speaker().refuse(name, UsageError, is_running="run" in ACTIVE)

    def init(self: NotKept, *arguments: Any, **options: Any) -> None:
        use()

    def function(*arguments: Any, **options: Any) -> NotKept:
        use()
        return NotKept()

    if name not in _stubs:
        function.__name__ = last
        members = {"__init__": init, "__module__": __name__, "__doc__": f"W&B's {name}, without a meaning."}
        is_class = last.lstrip("_")[:1].isupper()
        if last.endswith("Error"):
            _stubs[name] = type(last, (Error,), {"__module__": __name__})  # it may stand in an `except`
        else:
            _stubs[name] = type(last, (NotKept,), members) if is_class else function
    return _stubs[name]


class WandbVideo:
    """A video: a file, or frames as an array (T, C, H, W) or (N, T, C, H, W)."""

    def __init__(
        self,
        data_or_path: Any,
        caption: str | None = None,
        fps: float | None = None,
        format: str | None = None,  # W&B's name
        **options: Any,
    ) -> None:
        """Prepare; nothing is read.

        Args:
            data_or_path: a path, or the frames.
            caption: a line of the run's log.
            fps: frames per second, of frames; default: 4.
            format: said once: the server encodes it.
            options: said once.
        """
        speaker().arguments("Video", {"format": format} | options)
        self.data_or_path = data_or_path
        self.caption = caption
        self.fps = _DEFAULT_FPS if fps is None else fps

    def frames(self) -> Any:
        """What `ExternalRun.video` takes.

        Raises:
            ValueError: an array of another shape.
        """
        data = self.data_or_path
        if isinstance(data, (str, os.PathLike)):
            return data
        if hasattr(data, "detach"):
            data = data.detach().cpu()  # of torch
        array = np.asarray(data)
        if array.dtype != np.uint8:  # W&B reads all numbers as 0 to 255
            array = np.clip(array, 0, 255).astype(np.uint8)
        return frames_of_videos(array[None] if array.ndim == 4 else array)


Video = WandbVideo


class WandbHistogram(CallboardHistogram):
    """A histogram of values, or of what `numpy.histogram` has returned."""

    def __init__(
        self, sequence: Any = None, np_histogram: Any = None, num_bins: int = 64, **options: Any
    ) -> None:
        """Prepare; nothing is counted.

        Args:
            sequence: the values.
            np_histogram: counts and edges.
            num_bins: said once, if it is not 64.
            options: said once.
        """
        speaker().arguments("Histogram", {"num_bins": None if num_bins == _BINS else num_bins} | options)
        is_pair = isinstance(np_histogram, (tuple, list)) and len(np_histogram) == 2
        counts, edges = np_histogram if is_pair else (np_histogram, None)
        super().__init__(sequence, counts=counts, edges=edges)


class WandbImage(CallboardImage):
    """An image: pixels, a tensor (C, H, W), a PIL image, a Matplotlib figure, or a path."""

    def __init__(
        self,
        data_or_path: Any = None,
        mode: str | None = None,
        caption: str | None = None,
        grouping: Any = None,
        classes: Any = None,
        boxes: Any = None,
        masks: Any = None,
        file_type: str | None = None,
        normalize: bool = True,
        **options: Any,
    ) -> None:
        """Prepare; nothing is read.

        Args:
            data_or_path: what it is.
            mode: said once, as what follows the caption.
            caption: a line below it.
            grouping: see `mode`.
            classes: see `mode`.
            boxes: see `mode`.
            masks: see `mode`.
            file_type: see `mode`.
            normalize: whether numbers between 0 and 1, or -1 and 1, are read as all between black and white.
            options: said once.
        """
        said = {"mode": mode, "grouping": grouping, "classes": classes, "boxes": boxes, "masks": masks}
        speaker().arguments("Image", said | {"file_type": file_type} | options)
        super().__init__(
            getattr(data_or_path, "data", None) if _is_image(data_or_path) else data_or_path, caption
        )
        self._normalizes = normalize

    def pixels(self) -> Any:
        """The pixels, in W&B's range of numbers, as uint8."""
        array = array_of(self.data)
        if array.dtype in (np.uint8, bool) or array.dtype.kind not in "iuf" or array.size == 0:
            return array
        low, high = np.nanmin(array), np.nanmax(array)
        if self._normalizes and low >= 0 and high <= 1:
            array = array * 255.0
        elif self._normalizes and low >= -1 and high <= 1:
            array = (array + 1.0) * 127.5
        return np.clip(np.nan_to_num(array), 0, 255).astype(np.uint8)


def _is_image(value: Any) -> bool:
    return isinstance(value, CallboardImage)


class WandbTable(CallboardTable):
    """A table that a script fills row by row."""

    def __init__(
        self,
        columns: Any = None,
        data: Any = None,
        rows: Any = None,
        dataframe: Any = None,
        dtype: Any = None,
        optional: Any = True,
        allow_mixed_types: bool = False,
        log_mode: str | None = None,
        **options: Any,
    ) -> None:
        """Begin with these rows.

        Args:
            columns: names of the columns; default: W&B's, `Input`, `Output` and `Expected`.
            data: rows, or a DataFrame.
            rows: the same, as before W&B 0.10.
            dataframe: a DataFrame.
            dtype: said once: a cell is what it is.
            optional: of no effect: any cell may be None.
            allow_mixed_types: of no effect: any cell may be of any type.
            log_mode: said once, if it is not `IMMUTABLE`: a table has the rows that it has when it is logged.
            options: said once.
        """
        mode = None if log_mode in (None, "IMMUTABLE", "MUTABLE") else log_mode
        speaker().arguments("Table", {"dtype": dtype, "log_mode": mode} | options)
        frame = dataframe if dataframe is not None else data if hasattr(data, "itertuples") else None
        if frame is not None:
            super().__init__(frame)
        else:
            given = rows if data is None else data
            super().__init__(("Input", "Output", "Expected") if columns is None else columns, given)

    @property
    def data(self) -> list[Any]:
        """The rows."""
        return self.rows

    def add_data(self, *data: Any) -> None:
        """Add a row."""
        self.add(*data)

    def add_row(self, *row: Any) -> None:
        """Add a row."""
        self.add(*row)

    def add_column(self, name: str, data: Any, optional: bool = False) -> None:
        """Add a column."""
        cells = list(data)
        before = self.rows if self.columns else [()] * len(cells)
        self.columns = [*self.columns, name]
        self.rows = [(*row, cell) for row, cell in zip(before, cells)]

    def get_column(self, name: str, convert_to: str | None = None) -> Any:
        """The cells of a column."""
        cells = [row[self.columns.index(name)] for row in self.rows]
        return np.asarray(cells) if convert_to == "numpy" else cells

    def iterrows(self) -> Iterator[tuple[int, Any]]:
        """The rows with their numbers."""
        return iter(enumerate(self.rows))

    def get_dataframe(self) -> Any:
        """A DataFrame of it, where pandas is installed."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=self.columns)


Histogram, Image, Table = WandbHistogram, WandbImage, WandbTable
