"""The audit trail as a file."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Engine

from backend.access.audit import repository
from backend.access.audit.repository import Filter
from backend.access.audit.schemas import AuditEntryOut
from backend.db.engine import reading
from backend.drawing.cells import as_cell

MAX_ENTRIES = 100_000
"""Maximum number of entries of a file."""
BATCH = 500
"""Entries that are read at a time. No connection is held while they are sent, however slowly."""


def as_csv(db_engine: Engine, wanted: Filter) -> Iterator[str]:
    """The matching entries as CSV, latest first; `body` is JSON."""
    yield _line(list(AuditEntryOut.model_fields))
    for batch in _batches(db_engine, wanted):
        yield "".join(_line([_cell(value) for _, value in entry]) for entry in batch)


def as_json(db_engine: Engine, wanted: Filter) -> Iterator[str]:
    """The matching entries as a JSON array, latest first."""
    before = "[\n"
    for batch in _batches(db_engine, wanted):
        yield before + ",\n".join(entry.model_dump_json() for entry in batch)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _batches(db_engine: Engine, wanted: Filter) -> Iterator[list[AuditEntryOut]]:
    cursor, left = None, MAX_ENTRIES
    while left > 0:
        with reading(db_engine) as session:
            rows, cursor = repository.page(session, wanted, limit=min(BATCH, left), cursor=cursor)
            batch = [AuditEntryOut.model_validate(row) for row in rows]
        if batch:
            yield batch
        if cursor is None:
            return
        left -= len(batch)


def _line(cells: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return as_cell(text)  # any client can choose the name of a failed login
