"""The commands of the client alone, with some options of the server's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from callboard.display import counted
from callboard.errors import CallboardError
from callboard.rows import is_seed, seed_of
from callboard.server_commands import add_hosts, add_runs, add_token, printable
from callboard.syncing import Refused, discard, refused, sync

COMMANDS = ("sync", "runs", "import", "hosts", "token", "mcp")
"""What the client does without a server's installation."""

_BAD_INPUT = 2


def parser() -> argparse.ArgumentParser:
    """The options of every command."""
    root = argparse.ArgumentParser(prog="callboard", description="The client of Callboard.")
    commands = root.add_subparsers(dest="command", required=True)
    _add_sync(commands.add_parser("sync", help="send data that scripts have logged but not sent"))
    add_runs(commands.add_parser("runs", help="runs of the server: list, show, stop, resume, compare, …"))
    _add_import(commands.add_parser("import", help="record logs of other tools as runs"))
    add_hosts(commands.add_parser("hosts", help="list the hosts that train"))
    add_token(commands.add_parser("token", help="list and revoke API tokens"))
    _add_mcp(commands.add_parser("mcp", help="let assistants read runs, by the Model Context Protocol"))
    return root


def run(arguments: Sequence[str]) -> int:
    """Run a command; return its exit status."""
    given = parser().parse_args(arguments)
    try:
        return int(given.function(given))
    except (CallboardError, ValueError, TimeoutError, OSError) as error:
        sys.stderr.write(f"callboard: {printable(str(error))}\n")
        return _BAD_INPUT if isinstance(error, ValueError) else 1


def _add_sync(command: argparse.ArgumentParser) -> None:
    command.add_argument("--folder", help="folder of the spools; default: this user's")
    command.add_argument("--url", help="address of the server; default: the one that each script logged to")
    command.add_argument("--run", help="only data of the run with this id")
    command.add_argument("--discard", metavar="RUN", help="instead, delete what is set aside of this run")
    command.set_defaults(function=_sync)


def _sync(given: argparse.Namespace) -> int:
    if given.discard is not None:
        return ask_and_discard(given.folder, given.discard)
    return sync_and_report(given.folder, given.url, given.run)


def _add_mcp(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--allow-write", action="store_true", help="also let them start and stop runs, and add notes"
    )
    command.set_defaults(function=lambda given: serve_mcp(allow_write=given.allow_write))


def serve_mcp(*, allow_write: bool) -> int:
    """Serve assistants over standard input and output; return the exit status."""
    try:
        from callboard.mcp.server import serve
    except ImportError as error:
        sys.stderr.write(f"callboard: {error}: pip install 'callboard[mcp]', or 'callboard-client[mcp]'\n")
        return 1
    serve(allow_write=allow_write)
    return 0


def _add_import(command: argparse.ArgumentParser) -> None:
    kinds = command.add_subparsers(dest="kind", required=True)
    for kind, what in (
        ("tensorboard", "event files: scalars, texts and hyperparameters"),
        ("mlflow", "a folder mlruns, or an SQLite file"),
        ("trackio", "a project's database, or a folder of them"),
        ("wandb", "offline runs of W&B, and the folder wandb with them"),
    ):
        logs = kinds.add_parser(kind, help=what)
        logs.add_argument("path", type=Path, nargs=1, help="a folder or a file")
        logs.add_argument("--step", type=float, help="agent steps for each step of the log")
        logs.set_defaults(function=_import_logs)
    for kind, what in (("csv", "CSV, TSV and Parquet files"), ("jsonl", "JSON lines, one object a row")):
        rows = kinds.add_parser(kind, help=what)
        rows.add_argument("path", type=Path, nargs="+", help="files, or folders of them")
        rows.add_argument("--step", help="column of agent steps, or COLUMN*FACTOR")
        rows.add_argument("--wall-time", help="column of training time in seconds")
        rows.add_argument("--run", help="column that splits a file into several runs")
        rows.set_defaults(function=_import_rows)
    for parser in kinds.choices.values():
        parser.add_argument("--algorithm", help="name of the algorithm, instead of the log's")
        parser.add_argument("--environment", help="id of the environment, instead of the log's")
        parser.add_argument("--seed", type=_seed, help="seed, instead of the log's")
        parser.add_argument("--project", help="project of the runs, instead of the log's")
        parser.add_argument("--group", help="group of the runs")
        parser.add_argument("--tag", action="append", help="tag of the runs; repeatable")
        parser.add_argument(
            "--metric", action="append", default=[], help="METRIC of returns, or METRIC=NAME; repeatable"
        )
        parser.add_argument("--follow", action="store_true", help="import what is added, until Ctrl-C")
        parser.add_argument("--json", action="store_true", help="print one JSON object per run")


def _fields(given: argparse.Namespace) -> dict[str, Any]:
    named = {name: getattr(given, name) for name in ("algorithm", "environment", "seed", "project", "group")}
    return named | {"tags": given.tag}


def _import_logs(given: argparse.Namespace) -> int:
    from callboard.imports.command import import_logs

    return import_logs(
        given.kind,
        given.path,
        _fields(given),
        given.metric,
        step=given.step,
        follow=given.follow,
        as_json=given.json,
    )


def _import_rows(given: argparse.Namespace) -> int:
    from callboard.imports.command import import_rows

    return import_rows(
        given.kind,
        given.path,
        _fields(given),
        given.metric,
        step=given.step,
        wall_time=given.wall_time,
        run=given.run,
        follow=given.follow,
        as_json=given.json,
    )


def _seed(text: str) -> int:
    if not is_seed(text):
        raise argparse.ArgumentTypeError("must be a whole number from 0 to 2**63 - 1")
    return seed_of(text)


def sync_and_report(folder: str | None, url: str | None, run: str | None) -> int:
    """Send what is left, and print what was done; 1 if something remains or was refused."""
    done = sync(folder, url=url, run=run)
    for problem in done.problems:
        sys.stderr.write(f"{problem}\n")
    for rejection in done.refused:
        sys.stderr.write(f"{_line(rejection)}\n")
    if done.refused:
        sys.stderr.write("what is set aside is kept; `sync --discard RUN` deletes it\n")
    not_stored = f", {done.n_dropped:,} of them dropped by the server" if done.n_dropped else ""
    not_stored += f", {done.n_refused:,} set aside" if done.n_refused else ""
    rows = f"{done.n_rows:,} values, episodes and lines"
    sys.stdout.write(f"{counted(done.n_spools, 'spool')} sent: {rows}{not_stored}\n")
    return 1 if done.problems or done.refused else 0


def ask_and_discard(folder: str | None, run: str) -> int:
    """Delete what is set aside of a run, after a question; 1 if nothing is deleted."""
    kept = refused(folder, run=run)
    if not kept:
        sys.stderr.write(f"nothing of run {run} is set aside\n")
        return 1
    if all(rejection.is_kept for rejection in kept):
        sys.stderr.write(
            f"{_line(kept[0])}; it can be sent or discarded once its file `lock` can be locked\n"
        )
        return 1
    for rejection in kept:
        sys.stdout.write(f"{_line(rejection)}\n")
    sys.stdout.write("Delete it? It cannot be restored. [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        sys.stdout.write("nothing was deleted\n")
        return 1
    sys.stdout.write(f"{discard(run, folder):,} values, episodes, lines and files were deleted\n")
    return 0


def _line(rejection: Refused) -> str:
    n_rows, reason, folder = rejection.n_rows, rejection.reason, rejection.folder
    rows = f"{counted(n_rows, 'row')} {'is' if n_rows == 1 else 'are'} set aside"
    return f"run {rejection.run}: {rows}: {reason} (kept in {folder})"
