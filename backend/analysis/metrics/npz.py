"""Every point of runs as NumPy's `.npz`, written in a stream, without pyarrow.

The array `points/k` has the columns of the points of one series, or of a part of a long one, in order. Item k
of the arrays `run`, `metric` and `source` names this series.
"""

import io
import zipfile
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.chunks import joined, n_rows
from backend.analysis.metrics.export_common import Pipe
from backend.statistics.columns import Columns

POINT = np.dtype(
    [
        *(("agent_steps", "<i8"), ("frames", "<i8"), ("wall_time_s", "<f8")),
        *(("episodes", "<i8"), ("value", "<f8")),
    ]
)
_PART_ROWS = 65_536


def npz(session: Session, run_ids: Sequence[str], selected: repository.Selected) -> Iterator[bytes]:
    """The points of runs, by run, metric and source."""
    pipe = Pipe()
    named: list[tuple[str, str, str]] = []
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for run_id in run_ids:
            for series in repository.recorded_series(session, run_id, selected):
                for part in _parts(session, series.id):
                    points = np.empty(n_rows(part), POINT)
                    for name in POINT.names or ():
                        points[name] = part[name]
                    _write(archive, f"points/{len(named)}", points)
                    named.append((run_id, series.metric, series.source))
                    yield pipe.take()
        for at, name in enumerate(("run", "metric", "source")):
            _write(archive, name, np.array([parts[at] for parts in named], "U"))
    yield pipe.take()


def _parts(session: Session, series_id: int) -> Iterator[Columns]:
    """The points of a series in parts of similar size."""
    waiting: list[Columns] = []
    for part in repository.all_points(session, series_id):
        waiting.append(part)
        if sum(map(n_rows, waiting)) >= _PART_ROWS:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)


def _write(archive: zipfile.ZipFile, name: str, array: npt.NDArray[np.generic]) -> None:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    archive.writestr(f"{name}.npy", file.getbuffer())
