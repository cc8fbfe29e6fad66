"""The TensorBoard event files of runs, in a zip archive."""

import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import quote

from sqlalchemy.orm import Session

from backend.analysis.metrics import repository, tfevents
from backend.analysis.metrics.export_common import DESCRIPTION, PROVENANCE, ExportedRun, Pipe, Provenance
from backend.analysis.metrics.repository import ALL, Selected


def of_run(
    session: Session, run_id: str, provenance: Provenance, started_at: datetime, selected: Selected = ALL
) -> Iterator[bytes]:
    """A zip with a folder of event files per source; the step is agent steps.

    Args:
        session: a reading session.
        run_id: the run.
        provenance: what trained each of the run's attempts; a text in each folder.
        started_at: the time at which training time was 0.
        selected: which series.
    """
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:
        for _ in _write(archive, session, run_id, started_at, (PROVENANCE, provenance), selected=selected):
            yield pipe.take()
    yield pipe.take()


def of_runs(session: Session, runs: Sequence[ExportedRun], selected: Selected) -> Iterator[bytes]:
    """A zip with a folder per run, named after it, each with a folder of event files per source and the run's
    description as a text."""
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:
        for run in runs:
            text = (DESCRIPTION, run.description)
            for _ in _write(archive, session, run.id, run.started_at, text, _folder(run), selected):
                yield pipe.take()
    yield pipe.take()


def _write(
    archive: zipfile.ZipFile,
    session: Session,
    run_id: str,
    started_at: datetime,
    text: tuple[str, Any],
    folder: str = "",
    selected: Selected = ALL,
) -> Iterator[None]:
    """Write a folder of event files per source; the step is agent steps. Yields after each part.

    Args:
        archive: open for writing.
        session: a reading session.
        run_id: the run.
        started_at: the time at which training time was 0.
        text: tag and JSON value of a text in each folder.
        folder: prefix of the folders, with its slash.
        selected: which series.
    """
    start = started_at.timestamp()
    tag, value = text
    recorded = repository.recorded_series(session, run_id, selected)
    every = sorted(recorded, key=lambda series: (series.source, series.metric))
    for source, source_series in groupby(every, key=lambda series: series.source):
        name = f"source-{quote(source, safe='')}" if source else "run"
        path = f"{folder}{name}/events.out.tfevents.{int(start):010d}.callboard"
        entry = zipfile.ZipInfo(path)
        entry.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(entry, "w", force_zip64=True) as file:
            file.write(tfevents.header(start))
            file.write(tfevents.text(tag, start, _code_block(value)))
            for series in source_series:
                for part in repository.all_points(session, series.id):
                    times = start + part["wall_time_s"]
                    file.write(tfevents.scalars(series.metric, times, part["agent_steps"], part["value"]))
                    yield


def _folder(run: ExportedRun) -> str:
    """A folder name that is safe on every system, and unique: names of runs may be equal."""
    words = re.sub(r"[^A-Za-z0-9._=-]+", "_", run.name).strip("._")[:80]
    return f"{words}-{run.id}/" if words else f"{run.id}/"


def _code_block(value: Any) -> str:
    """A value as indented JSON, which Markdown leaves as it is."""
    return "\n".join(f"    {line}" for line in json.dumps(value, indent=2).splitlines())
