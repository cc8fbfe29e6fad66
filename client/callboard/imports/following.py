"""`callboard import --follow`: imports what is added to files, until it is interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from callboard.errors import Unreachable
from callboard.imports.log import problem_of
from callboard.imports.sending import Imported, Options, end_run, keep_running, send
from callboard.transport import Transport

INTERVAL_S = 5.0
"""Time between two looks at the files. A run is lost after 60 s without a message."""


def follow_paths(
    paths: Sequence[Path],
    read: Callable[[Path], Any],
    transport: Transport,
    options: Options,
    report: Callable[[Imported], None],
) -> list[Imported]:
    """Import these files and folders whenever they change; Ctrl-C or SIGTERM ends it, and their runs.

    A path that cannot be read, or whose logs the server does not take now, is tried again in 5 s and does not
    hold up the others. A log that is refused is tried again when a file of its path changes. Returns what
    became of each log at the end.

    Args:
        paths: files and folders, which may not exist yet.
        read: the reader of their logs.
        transport: where to.
        options: what the user says of the logs.
        report: is called with each log that has something new, or that cannot be imported.
    """
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    runs: dict[tuple[Path, str], str] = {}
    problems: set[tuple[Path, str, str]] = set()
    states: dict[Path, object] = {}
    try:
        while True:
            is_last = ended.is_set()
            last: list[Imported] = []
            for path in paths:
                state = _state_of(path)
                if state == states.get(path) and not is_last:
                    continue
                try:
                    for log in read(path) if path.exists() else ():
                        last.append(send(log, transport, options, is_complete=is_last))
                        _report_new(path, last[-1], runs, problems, report)
                    states[path] = state
                except Exception as error:  # of a file that is written, for example
                    problem = str(error) if isinstance(error, Unreachable) else problem_of(error)
                    last.append(Imported(str(path), problem=problem))
                    _report_new(path, last[-1], runs, problems, report)
            for run in set(runs.values()) - {result.run for result in last}:
                with suppress(Exception):  # the next look sends another heartbeat
                    (end_run if is_last else keep_running)(transport, run)
            if is_last:
                return last
            ended.wait(INTERVAL_S)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report_new(
    path: Path,
    done: Imported,
    runs: dict[tuple[Path, str], str],
    problems: set[tuple[Path, str, str]],
    report: Callable[[Imported], None],
) -> None:
    if done.problem is not None:
        if (path, done.name, done.problem) not in problems:
            problems.add((path, done.name, done.problem))
            report(done)
    elif done.run is not None:
        if done.n_points or done.n_lines or done.run not in runs.values():
            report(done)
        runs[path, done.name] = done.run


def _state_of(path: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of the last change of each file."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    states = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        states.append((str(file), status.st_size, status.st_mtime_ns))
    return states
