"""Series of runs as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True)
class Series:
    """Points of metrics of runs, as NumPy columns of equal length: by run, metric and source, in order."""

    run: npt.NDArray[np.str_]
    """Ids of the runs."""
    metric: npt.NDArray[np.str_]
    source: npt.NDArray[np.str_]
    """Which actor reported the point; empty for the run as a whole."""
    agent_steps: npt.NDArray[np.int64]
    frames: npt.NDArray[np.int64]
    wall_time_s: npt.NDArray[np.float64]
    episodes: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Number of points."""
        return len(self.value)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def by_run(self) -> dict[str, Series]:
        """The points of each run."""
        runs = list(dict.fromkeys(self.run.tolist()))
        return {run: self._where(self.run == run) for run in runs}

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame with these columns."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame with these columns."""
        import polars as pl

        return pl.DataFrame(self.columns())

    @classmethod
    def joined(cls, parts: Sequence[Series]) -> Series:
        """The points of all parts."""
        columns = [part.columns().values() for part in (EMPTY, *parts)]
        return cls(*(np.concatenate(column) for column in zip(*columns)))

    def sorted_as(self, runs: Sequence[str]) -> Series:
        """The points by run, in this order, metric and source."""
        places = {run: at for at, run in enumerate(runs)}
        keys: Any = (self.source, self.metric, [places[run] for run in self.run.tolist()])
        order = np.lexsort(keys)
        return Series(**{name: column[order] for name, column in self.columns().items()})

    def _where(self, rows: npt.NDArray[np.bool_]) -> Series:
        return Series(**{name: column[rows] for name, column in self.columns().items()})


_KINDS = ("U", "U", "U", "i8", "i8", "f8", "i8", "f8")

EMPTY = Series(*(np.empty(0, kind) for kind in _KINDS))


def read_npz(file: IO[bytes]) -> Series:
    """The points of an export of runs as `.npz`."""
    with np.load(file, allow_pickle=False) as arrays:
        names = zip(*(arrays[name].tolist() for name in ("run", "metric", "source")))
        parts = []
        for at, texts in enumerate(names):
            points = arrays[f"points/{at}"]
            repeated = (np.full(len(points), text) for text in texts)
            parts.append(Series(*repeated, *(points[field.name] for field in fields(Series)[3:])))
    return Series.joined(parts)
