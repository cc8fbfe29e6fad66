"""What `callboard import` does once its options are read: reads logs, sends them, and reports each."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callboard.display import counted
from callboard.errors import NotConfigured, Unreachable
from callboard.imports import mlflow, tensorboard, trackio, wandb
from callboard.imports.following import follow_paths
from callboard.imports.log import Log, UnreadableLog, problem_of
from callboard.imports.rows import JSON_ENDINGS, TABLE_ENDINGS
from callboard.imports.sending import Imported, Options, send
from callboard.imports.table import ColumnMapping
from callboard.imports.tables import read
from callboard.transport import Transport, find_server, spool_root

BAD_INPUT = 2
"""Exit code for invalid input."""
FACTORS = (1e-9, 1e12)
"""The least and the most agent steps for each step of a log."""

_SHOWN_CANDIDATES = 5
_READERS = {
    "tensorboard": tensorboard.read,
    "mlflow": mlflow.read,
    "trackio": trackio.read,
    "wandb": wandb.read,
}


class _Failure(Exception):
    """A command that ends with one line and an exit code."""

    def __init__(self, message: str, code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.code = code


def report_failure(message: str, code: int = BAD_INPUT) -> int:
    """Print an error in one line, with control characters escaped; return the exit code."""
    line = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in message)
    sys.stderr.write(f"callboard: {line}\n")
    return code


def import_logs(
    kind: str,
    paths: Sequence[Path],
    fields: Mapping[str, Any],
    metrics: Sequence[str],
    *,
    step: float | None,
    follow: bool,
    as_json: bool,
) -> int:
    """Import logs that need no mapping of columns; return the exit code.

    Args:
        kind: `tensorboard`, `mlflow`, `trackio` or `wandb`.
        paths: files and folders.
        fields: fields of the runs, instead of the logs'.
        metrics: `METRIC` or `METRIC=NAME`.
        step: agent steps for each step of the log.
        follow: import what is added, until it is interrupted.
        as_json: print a line of JSON for each run.
    """
    if step is not None and not FACTORS[0] <= step <= FACTORS[1]:
        return report_failure(f"--step: must be from 1e-9 to 1e12: got {step}")
    reader = _READERS[kind]
    return _import(paths, reader, Options(fields, tuple(metrics), step), as_json, follow=follow)


def import_rows(
    kind: str,
    paths: Sequence[Path],
    fields: Mapping[str, Any],
    metrics: Sequence[str],
    *,
    step: str | None,
    wall_time: str | None,
    run: str | None,
    follow: bool,
    as_json: bool,
) -> int:
    """Import files of rows; return the exit code.

    Args:
        kind: `csv` or `jsonl`.
        paths: files and folders.
        fields: fields of the runs, instead of the logs'.
        metrics: `COLUMN=METRIC` or `METRIC`.
        step: `COLUMN` or `COLUMN*FACTOR`.
        wall_time: column of training time.
        run: column that splits a file into several runs.
        follow: import what is added, until it is interrupted.
        as_json: print a line of JSON for each run.
    """
    pairs = [metric.rpartition("=") for metric in metrics if "=" in metric]
    for column, _, name in pairs:
        if not column or not name:
            wanted = "must be COLUMN=NAME, such as r=rollout/episode_return"
            return report_failure(f"--metric: {wanted}: got {column}={name}")
    try:
        step_column, factor = _split_factor(step)
    except _Failure as failure:
        return report_failure(str(failure))
    named = {column: name for column, _, name in pairs}
    mapping = ColumnMapping(step_column, wall_time, run, named, factor is not None)
    of_reader = {"step": step, "wall_time": wall_time, "run": run, "columns": dict(mapping.metrics)}
    returns = tuple(metric for metric in metrics if "=" not in metric)
    endings = JSON_ENDINGS if kind == "jsonl" else TABLE_ENDINGS
    return _import(
        paths,
        lambda path: read(path, mapping, endings, is_growing=follow),
        Options(fields, returns, factor, of_reader),
        as_json,
        follow=follow,
    )


def _split_factor(step: str | None) -> tuple[str | None, float | None]:
    """The column and the factor of `COLUMN*FACTOR`."""
    column, _, text = (step or "").rpartition("*")
    try:
        factor = float(text)
    except ValueError:
        return step, None
    if not column:
        return step, None
    if not FACTORS[0] <= factor <= FACTORS[1]:
        raise _Failure(f"--step: the factor must be from 1e-9 to 1e12: got {text}")
    return column, factor


def _import(
    paths: Sequence[Path],
    reader: Callable[[Path], Iterator[Log]],
    options: Options,
    as_json: bool,
    *,
    follow: bool,
) -> int:
    """Read and send; 1 if something could not be imported, 2 if nothing could be read.

    Whatever is wrong with one log, the others are imported.
    """
    done: list[Imported] = []
    n_unreadable = 0
    try:
        transport = Transport(find_server())
    except NotConfigured as error:
        return report_failure(str(error))
    try:
        with _alone():
            if follow:
                done = follow_paths(
                    paths, reader, transport, options, lambda imported: _report(imported, as_json)
                )
                _name_not_kept(done)
                return 1 if any(imported.problem for imported in done) else 0
            for path in paths:
                try:
                    if not path.exists():
                        raise UnreadableLog(f"{path}: no such file or folder")
                    for log in reader(path):
                        done.append(send(log, transport, options))
                        _report(done[-1], as_json)
                except Unreachable:
                    raise
                except UnreadableLog as error:
                    report_failure(str(error))
                    n_unreadable += 1
                except Exception as error:
                    report_failure(f"{path}: {problem_of(error)}")
                    n_unreadable += 1
    except Unreachable as error:
        return report_failure(f"{error} Run the import again to continue where this one stopped.", 1)
    except _Failure as failure:
        return report_failure(str(failure), failure.code)
    finally:
        transport.close()
    if n_unreadable and not done:
        return BAD_INPUT
    _sum_up(done, as_json)
    return 1 if n_unreadable or any(imported.problem for imported in done) else 0


@contextmanager
def _alone() -> Iterator[None]:
    """Refuse a concurrent import: neither would know what the other has sent. Nothing is imported where files
    cannot be locked: an import, unlike a training, can wait until they can."""
    root = spool_root().parent
    variable = "CALLBOARD_HOME" if os.environ.get("CALLBOARD_HOME") else "XDG_CACHE_HOME"
    hint = f"set {variable} to a folder that can be written and locked, such as one on a local disk"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _Failure(f"{root} cannot be created: {error.strerror}; {hint}", 1) from None
    try:
        file = (root / "import.lock").open("w")
    except OSError as error:
        raise _Failure(f"{root} cannot be written: {error.strerror}; {hint}", 1) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _Failure("another `callboard import` is running; wait until it has ended", 1) from None
        except OSError as error:
            raise _Failure(f"{root} cannot be locked: {error.strerror}; {hint}", 1) from None
        yield


def _report(done: Imported, as_json: bool) -> None:
    if as_json:
        shown: dict[str, Any] = {
            "name": done.name,
            "run": done.run,
            "points": done.n_points,
            "lines": done.n_lines,
        }
        shown |= {"resumed": done.resumed, "replaced": done.replaced, "problem": done.problem}
        shown |= {
            "not_kept": dict(done.not_kept),
            "said": done.said,
            "return_candidates": done.return_candidates,
        }
        sys.stdout.write(f"{json.dumps(shown)}\n")
        return
    if done.problem is not None:
        sys.stderr.write(f"callboard: {done.name}: {done.problem}\n")
        return
    nothing = done.resumed and not done.n_points and not done.n_lines
    new = "unchanged" if nothing else f"{counted(done.n_points, 'point')}, {counted(done.n_lines, 'line')}"
    replaced = ", instead of the earlier import" if done.replaced else ""
    sys.stdout.write(f"{done.run}  {done.name}: {new}{replaced}\n")
    if done.return_candidates is not None:
        sys.stdout.write(f"{_without_score(done.return_candidates)}\n")
    sys.stdout.flush()


def _without_score(candidates: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in candidates[:_SHOWN_CANDIDATES])
    hint = f"name it with --metric, such as one of {shown}" if shown else "name it with --metric"
    return f"  no score: none of its metrics is known to be the return; {hint}"


def _sum_up(done: Sequence[Imported], as_json: bool) -> None:
    """Print how much was imported, and name what was not kept."""
    if not as_json:
        failed = sum(imported.problem is not None for imported in done)
        n_points = sum(imported.n_points for imported in done)
        sys.stdout.write(
            f"{counted(len(done) - failed, 'run')}, {counted(n_points, 'point')}"
            + (f"; {failed:,} could not be imported\n" if failed else "\n")
        )
    _name_not_kept(done)


def _name_not_kept(done: Sequence[Imported]) -> None:
    not_kept: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for imported in done:
        not_kept.update(imported.not_kept)
        said.update(imported.said)
    for sentence, n in said.items():
        sys.stderr.write(f"note: {sentence}" + (f" ({counted(n, 'run')})\n" if n > 1 else "\n"))
    for what, n in not_kept.most_common():
        sys.stderr.write(f"not kept: {what}" + (f" ({n:,})\n" if n > 1 else "\n"))
