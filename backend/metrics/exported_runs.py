"""What exports of every format say of a run besides its points."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

PROVENANCE = "provenance"
"""Name of CSV's last column, of the key of Parquet's metadata, and of TensorBoard's text."""

Provenance = list[dict[str, Any]]
"""For each attempt: `attempt`, `host`, and the fields of `backend.specs.provenance` if they are known."""

DESCRIPTION = "description"
"""Name of the last column of a CSV of several runs, and of TensorBoard's text."""


@dataclass(frozen=True)
class ExportedRun:
    """One of several runs to export."""

    id: str
    name: str
    started_at: datetime
    """The time at which its training time was 0."""
    description: dict[str, Any]
    """Its name, spec and provenance, as JSON values."""
