"""The TensorBoard event files of a run, in a zip archive."""

import json
import zipfile
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import quote

from sqlalchemy.orm import Session

from backend.metrics import repository, tfevents

ALL = repository.Selected()
"""Every series."""


def write(
    archive: zipfile.ZipFile,
    session: Session,
    run_id: str,
    started_at: datetime,
    text: tuple[str, Any],
    folder: str = "",
    selected: repository.Selected = ALL,
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


def _code_block(value: Any) -> str:
    """A value as indented JSON, which Markdown leaves as it is."""
    return "\n".join(f"    {line}" for line in json.dumps(value, indent=2).splitlines())
