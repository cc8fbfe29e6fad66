"""The histograms, images and tables of a run in a zip archive."""

import json
import zipfile
from collections.abc import Generator
from urllib.parse import quote

from sqlalchemy import Engine

from backend.analysis.media import repository
from backend.analysis.metrics.export_common import Pipe
from backend.db import Media
from backend.db.engine import reading
from backend.platform.artifacts import ArtifactStore, Damaged
from backend.statistics.histograms import Histogram

INDEX = "media.jsonl"
_ITEMS_PER_READ = 500
_MAX_FOLDER = 100
"""Characters of a folder's name."""

SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "application/json": "json"}
"""Of files, by media type: nothing that a browser executes."""


def archive(db_engine: Engine, store: ArtifactStore, run_id: str) -> Generator[bytes]:
    """A zip with the files of images and tables, and `media.jsonl`: a line for each item, with its bins or
    the name of its file; a file that is damaged or missing has none."""
    pipe = Pipe()
    lines: list[str] = []
    with reading(db_engine) as session, zipfile.ZipFile(pipe, "w") as zipped:
        rows = repository.items(session, run_id)
        for first in range(0, len(rows), _ITEMS_PER_READ):
            part = rows[first : first + _ITEMS_PER_READ]
            bins = repository.bins_of(session, [row.id for row in part if row.file is None])
            for row in part:
                name = None
                if row.file is not None and (content := _content(store, row, row.file)) is not None:
                    name = _name(row)
                    zipped.writestr(name, content)
                    yield pipe.take()
                lines.append(_line(row, name, bins.get(row.id)))
        zipped.writestr(INDEX, "".join(lines), zipfile.ZIP_DEFLATED)
    yield pipe.take()


def _content(store: ArtifactStore, row: Media, file: str) -> bytes | None:
    try:
        return store.read(row.run_id, "media", file, row.sha256)
    except (FileNotFoundError, Damaged):
        return None


def _name(row: Media) -> str:
    folder = quote(row.metric, safe="")[:_MAX_FOLDER]
    return f"{row.kind}s/{folder}/{row.agent_steps}-{row.id}.{SUFFIXES[row.media_type or '']}"


def _line(row: Media, name: str | None, bins: bytes | None) -> str:
    item = {
        "kind": row.kind,
        "metric": row.metric,
        "agent_steps": row.agent_steps,
        "wall_time_s": row.wall_time_s,
    }
    if bins is not None:
        histogram = Histogram.of_bytes(bins)
        item |= {"edges": histogram.edges.tolist(), "counts": histogram.counts.tolist()}
    else:
        item |= {"caption": row.caption, "file": name}
    return json.dumps(item) + "\n"
