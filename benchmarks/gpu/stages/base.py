"""What a stage of the benchmark gets, and how the rows of several stages are named."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.row_runner import AddRecord, Row, run_rows

MAX_WORKERS = 64
RowsOf = Callable[[str], list[dict[str, Any]]]
"""The rows so far of a stage, by its name."""


@dataclass(frozen=True)
class StageContext:
    """One run of one stage."""

    device: str
    """`cuda`, or `cpu` in a rehearsal."""
    is_short: bool
    """Whether the sizes and times are those of a rehearsal on a small machine."""
    deadline: float
    """Time of `time.monotonic` at which the stage must have ended."""
    folder: Path
    """For files of its own."""
    add: AddRecord
    rows_of: RowsOf

    @property
    def cores(self) -> int:
        """Cores that this process may use, at most the number of workers that a run may have."""
        return min(len(os.sched_getaffinity(0)), MAX_WORKERS)

    def run_rows(self, function: str, rows: Sequence[Row]) -> None:
        """As `benchmarks.gpu.row_runner.run_rows`."""
        run_rows(function, rows, deadline=self.deadline, folder=self.folder / "processes", add=self.add)
