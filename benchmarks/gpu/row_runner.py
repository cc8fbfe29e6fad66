"""Runs rows in processes of their own, kills what is late, and keeps what came before.

A process measures rows one after the other and appends what it knows of each to a file of JSON lines. If a
row fails, is late or takes its process with it, its error becomes its result, and a new process goes on with
the next row.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

START_LIMIT_S = 45.0
"""How much longer the first row of a process may take: PyTorch is imported from a cold disk."""
MIN_ROW_S = 4.0
"""No process is started with less time than this left."""
NOT_REACHED = "not reached"

_POLL_S = 0.05
_DEATH_LIMIT_S = 5.0
_LOG_TAIL_CHARACTERS = 300

AddRecord = Callable[[str, dict[str, Any]], None]
"""Called with a row's name and all that is known of it so far."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    id: str
    arguments: dict[str, Any] = field(default_factory=dict)
    """Of the function that measures it."""
    limit_s: float = 30.0
    facts: dict[str, Any] = field(default_factory=dict)
    """Part of the result, whether the row is measured or not."""


def run_rows(
    function: str,
    rows: Sequence[Row],
    *,
    deadline: float,
    folder: Path,
    add: AddRecord,
) -> None:
    """Measure rows in turn, in as few processes as their failures allow.

    Args:
        function: `module:name` of a generator function; it is called with the arguments of a row and yields
            what is known of the row so far, once or repeatedly.
        rows: the rows to measure, the most important first.
        deadline: time of `time.monotonic` at which whatever still runs is killed.
        folder: folder for the processes' output.
        add: receives the results.
    """
    waiting = list(rows)
    while waiting and time.monotonic() + MIN_ROW_S < deadline:
        process = _RowProcess(function, waiting, folder, deadline)
        try:
            process.watch(waiting, add)
        finally:
            process.kill()
    for row in waiting:
        add(row.id, {**row.facts, "error": NOT_REACHED})


class _RowProcess:
    """A process that measures rows; see `benchmarks.gpu.row_process`."""

    def __init__(self, function: str, rows: Sequence[Row], folder: Path, deadline: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{len(list(folder.glob('*.log'))):02d}-{function.partition(':')[0].rpartition('.')[2]}"
        self._records = folder / f"{stem}.jsonl"
        self._log = folder / f"{stem}.log"
        self._deadline = deadline
        self._read_bytes = 0
        requests = [{"id": row.id, "arguments": row.arguments} for row in rows]
        command = [sys.executable, "-m", "benchmarks.gpu.row_process", function, json.dumps(requests)]
        command += ["--records", str(self._records), "--parent", str(os.getpid())]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def watch(self, waiting: list[Row], add: AddRecord) -> None:
        """Wait for results, and remove from `waiting` each row that has its last one.

        Returns when no row waits, or when a row failed: a new process is needed for the others.
        """
        started = time.monotonic()
        limit_s = START_LIMIT_S + waiting[0].limit_s
        known: dict[str, Any] = {}
        while waiting:
            row = waiting[0]
            has_exited = self._process.poll() is not None  # before the last records are read
            for line in self._new_lines():
                row = waiting[0]
                known |= line.get("record", {})
                passed_s = round(time.monotonic() - started, 1)
                add(row.id, {**row.facts, **known, "seconds": passed_s})
                if line["done"]:
                    waiting.pop(0)
                    if "error" in known or not waiting:
                        return
                    started, limit_s, known = time.monotonic(), waiting[0].limit_s, {}
            now = time.monotonic()
            error = None
            if has_exited:
                error = f"the process exited with status {self._process.returncode}: {self._log_tail()}"
            elif now >= self._deadline:
                error = "killed at the stage's deadline"
            elif now >= started + limit_s:
                error = f"killed after {limit_s:.0f} s: {self._log_tail()}"
            if error is not None:
                add(row.id, {**row.facts, **known, "error": error, "seconds": round(now - started, 1)})
                waiting.pop(0)
                return
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kill the process, its group and every descendant."""
        descendants: list[psutil.Process] = []
        with suppress(psutil.Error):
            descendants = psutil.Process(self._process.pid).children(recursive=True)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for descendant in descendants:
            with suppress(psutil.Error):
                descendant.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_DEATH_LIMIT_S)
        limit = time.monotonic() + _DEATH_LIMIT_S
        while any(map(_is_running, descendants)) and time.monotonic() < limit:
            time.sleep(_POLL_S)

    def _new_lines(self) -> list[dict[str, Any]]:
        """The complete lines that were appended since the last call."""
        if not self._records.exists():
            return []
        with self._records.open("rb") as file:
            file.seek(self._read_bytes)
            content = file.read()
        complete = content[: content.rfind(b"\n") + 1]
        self._read_bytes += len(complete)
        return [json.loads(line) for line in complete.splitlines()]

    def _log_tail(self) -> str:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1][-_LOG_TAIL_CHARACTERS:] if lines else "no output"


def _is_running(process: psutil.Process) -> bool:
    """Whether it exists and has not ended: in a container nobody may remove what is left of it."""
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False
