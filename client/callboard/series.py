"""Series of runs as columns."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from callboard.names import as_cell, of_cell

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

READ_ROWS = 50_000
"""Maximum number of points read at a time: their text is in memory in addition to the columns."""


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

    def by_run(self) -> dict[str, "Series"]:
        """The points of each run."""
        runs = list(dict.fromkeys(self.run.tolist()))
        return {run: self._where(self.run == run) for run in runs}

    def to_pandas(self) -> "pd.DataFrame":
        """A pandas data frame with these columns."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> "pl.DataFrame":
        """A polars data frame with these columns."""
        import polars as pl

        return pl.DataFrame(self.columns())

    @classmethod
    def joined(cls, parts: Sequence["Series"]) -> "Series":
        """The points of all parts."""
        columns = [part.columns().values() for part in (EMPTY, *parts)]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))

    def _where(self, rows: npt.NDArray[np.bool_]) -> "Series":
        return Series(**{name: column[rows] for name, column in self.columns().items()})


_KINDS = ("U", "U", "U", "i8", "i8", "f8", "i8", "f8")

EMPTY = Series(*(np.empty(0, kind) for kind in _KINDS))


def read_csv(lines: Iterable[str], metrics: Sequence[str], sources: bool) -> Series:
    """The points of some metrics of an export of runs.

    Args:
        lines: of the CSV file.
        metrics: their names.
        sources: include the points of single actors.
    """
    rows = csv.reader(lines)
    names = next(rows)
    at = [names.index(field.name) for field in fields(Series)]
    metric, source, value = names.index("metric"), names.index("source"), names.index("value")
    wanted = frozenset(map(as_cell, metrics))
    found = (row for row in rows if row[metric] in wanted and (sources or not row[source]))
    parts = []
    while block := list(islice(_complete(found, (metric, source), value), READ_ROWS)):
        text = list(zip(*block, strict=True))
        parts.append(Series(*(np.array(text[column], kind) for column, kind in zip(at, _KINDS, strict=True))))
    return Series.joined(parts)


def _complete(rows: Iterable[list[str]], texts: Sequence[int], value: int) -> Iterator[list[str]]:
    """Rows without their last column, a description; no value is NaN."""
    for row in rows:
        row[value] = row[value] or "nan"
        for at in texts:
            row[at] = of_cell(row[at])
        yield row[:-1]
