"""The results of a benchmark, written again after each row: `results.json` and `table.md`."""

import json
import math
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.table import table
from workers.engine.files import replacing

JSON_FILE = "results.json"
TABLE_FILE = "table.md"


class Results:
    """All rows so far, in the order in which they were first added."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        """Start without rows.

        Args:
            folder: where both files are written.
            facts: facts of the machine and of this call, by name.
        """
        self._folder = folder
        self._started = time.monotonic()
        self._facts = facts
        self._stages: list[dict[str, Any]] = []
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, stage: str, row: str, record: dict[str, Any]) -> None:
        """Add a row, or replace what is known of it, and write both files."""
        self._rows[stage, row] = {"stage": stage, "row": row, **record}
        self.write()

    def end_stage(self, stage: str, seconds: float, error: str | None) -> None:
        """Record that a stage has ended, and write both files.

        Args:
            stage: name of the stage.
            seconds: how long the stage took.
            error: why it ended early, if it did.
        """
        self._stages.append({"stage": stage, "seconds": round(seconds, 1), "error": error})
        self.write()

    def rows(self, stage: str) -> list[dict[str, Any]]:
        """The rows of one stage."""
        return [row for row in self._rows.values() if row["stage"] == stage]

    def has_failures(self) -> bool:
        """Whether a stage or a row ended with an error, or a test or check did not pass."""
        rows = self._rows.values()
        return (
            any(stage["error"] is not None for stage in self._stages)
            or any("error" in row or row.get("failed") for row in rows)
            or any(row.get("passed") is False for row in rows)
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything so far, as JSON values."""
        passed_s = round(time.monotonic() - self._started, 1)
        facts = {**self._facts, "seconds": passed_s}
        return _finite({"facts": facts, "stages": self._stages, "rows": list(self._rows.values())})  # type: ignore[no-any-return]

    def write(self) -> None:
        """Replace both files; a reader never finds one of them torn."""
        results = self.as_dict()
        with replacing(self._folder / JSON_FILE) as partial:
            partial.write_text(json.dumps(results, indent=1, allow_nan=False) + "\n", "utf-8")
        with replacing(self._folder / TABLE_FILE) as partial:
            partial.write_text(table(results), "utf-8")


def _finite(value: Any) -> Any:
    """The same values with NaN and Inf, for which JSON has no number, as text."""
    if isinstance(value, dict):
        return {str(key): _finite(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
