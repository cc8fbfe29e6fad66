"""Values of W&B's own types. Only videos are kept; the others are counted when they are logged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from callboard.files import frames_of_videos
from callboard.wandb.active import ACTIVE, speaker
from callboard.wandb.errors import Error, UsageError

_DEFAULT_FPS = 4.0


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


Image = _of_kind("Image", "images")
Histogram = _of_kind("Histogram", "histograms")
Table = _of_kind("Table", "tables")
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
