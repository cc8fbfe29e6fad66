"""`callboard import`: record logs of other tools as runs of a server, over REST."""

import fcntl
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.specs.run_fields import MAX_EXTERNAL_SEED
from callboard_cli import fail

if TYPE_CHECKING:
    from callboard_cli.imports.log import Log
    from callboard_cli.imports.sending import Imported, Options

app = typer.Typer(
    help="Record logs of other tools as runs. (For runs of Callboard itself: `callboard runs import`.)",
    no_args_is_help=True,
)

_SHOWN_CANDIDATES = 5

Algorithm = Annotated[str | None, typer.Option(help="Name of the algorithm, instead of the log's.")]
Environment = Annotated[
    str | None, typer.Option(help="Id of the environment, such as ALE/Pong-v5, instead of the log's.")
]
Seed = Annotated[int | None, typer.Option(min=0, max=MAX_EXTERNAL_SEED, help="Seed, instead of the log's.")]
Group = Annotated[str | None, typer.Option(help="Group of the runs.")]
Tag = Annotated[list[str] | None, typer.Option(help="Tag of the runs; repeatable.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        help="METRIC: the metric of returns, by which the run is scored; default: that of a known library. "
        "METRIC=NAME: another name for a metric. Repeatable."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")]
Follow = Annotated[
    bool,
    typer.Option("--follow", help="Import what is added, until Ctrl-C. Its runs are running until then."),
]

_ROWS_HELP = """Import {}, with a row for each step and a column for each metric, or a row for each point.

A second import of the same file adds only new rows; with other options it replaces the first.
"""


@app.command()
def tensorboard(
    path: Annotated[
        Path, typer.Argument(help="A folder: each folder in it with event files is a run. Or one event file.")
    ],
    algorithm: Algorithm = None,
    environment: Environment = None,
    seed: Seed = None,
    group: Group = None,
    tag: Tag = None,
    metric: Metrics = None,
    step: Annotated[
        float | None,
        typer.Option(
            min=1e-9,
            max=1e12,
            help="Agent steps for each step of the log, if it counts iterations, or steps of each of several "
            "environments.",
        ),
    ] = None,
    follow: Follow = False,
    as_json: Json = False,
) -> None:
    """Import TensorBoard's event files: scalars, texts and hyperparameters.

    A second import of the same files adds only what is new; with other options it replaces the first.
    """
    from callboard_cli.imports.sending import Options
    from callboard_cli.imports.tensorboard import read

    fields = {"algorithm": algorithm, "environment": environment, "seed": seed, "group": group, "tags": tag}
    _import([path], read, Options(fields, tuple(metric or ()), step), as_json, follow=follow)


@app.command("jsonl", help=_ROWS_HELP.format("JSON lines, one object a row"))
@app.command("csv", help=_ROWS_HELP.format("CSV, TSV and Parquet files"))
def rows(
    context: typer.Context,
    path: Annotated[
        list[Path], typer.Argument(help="Files, or folders of them: one run each, or see --run.")
    ],
    step: Annotated[
        str | None,
        typer.Option(
            help="Column of agent steps; default: agent_steps, global_step or step. COLUMN*FACTOR: agent "
            "steps for each of its steps. A column such as training_iteration counts iterations."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=METRIC, such as r=rollout/episode_return: these columns only. METRIC: the metric of "
            "returns, by which the run is scored. Repeatable."
        ),
    ] = None,
    wall_time: Annotated[str | None, typer.Option(help="Column of training time in seconds.")] = None,
    run: Annotated[str | None, typer.Option(help="Column that splits a file into several runs.")] = None,
    algorithm: Algorithm = None,
    environment: Environment = None,
    seed: Seed = None,
    group: Group = None,
    tag: Tag = None,
    follow: Follow = False,
    as_json: Json = False,
) -> None:
    """Import files of rows; the name of the command says which."""
    from callboard_cli.imports.rows import CSV_ENDINGS, JSON_ENDINGS
    from callboard_cli.imports.sending import Options
    from callboard_cli.imports.tables import Mapped, read

    pairs = [each.rpartition("=") for each in metric or [] if "=" in each]
    for column, _, name in pairs:
        if not column or not name:
            raise fail(
                f"--metric: must be COLUMN=NAME, such as r=rollout/episode_return: got {column}={name}"
            )
    step_column, factor = _split_factor(step)
    mapped = Mapped(step_column, wall_time, run, {column: name for column, _, name in pairs})
    fields = {"algorithm": algorithm, "environment": environment, "seed": seed, "group": group, "tags": tag}
    of_reader = {"step": step, "wall_time": wall_time, "run": run, "columns": dict(mapped.metrics)}
    returns = tuple(each for each in metric or [] if "=" not in each)
    endings = JSON_ENDINGS if context.info_name == "jsonl" else CSV_ENDINGS
    _import(
        path,
        lambda each: read(each, mapped, endings, is_growing=follow),
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
    if not 1e-9 <= factor <= 1e12:
        raise fail(f"--step: the factor must be from 1e-9 to 1e12: got {text}")
    return column, factor


def _import(
    paths: Sequence[Path], read: Any, options: "Options", as_json: bool, *, follow: bool = False
) -> None:
    """Read and send; exit code 1 if something could not be imported, 2 if nothing could be read."""
    from callboard.errors import NotConfigured, Unreachable
    from callboard.transport import Transport, find_server
    from callboard_cli.imports.following import follow_paths
    from callboard_cli.imports.log import UnreadableLog
    from callboard_cli.imports.sending import Imported, send

    done: list[Imported] = []
    try:
        transport = Transport(find_server())
    except NotConfigured as error:
        raise fail(str(error)) from None
    try:
        with _alone():
            if follow:
                follow_paths(paths, read, transport, options, lambda each: _report(each, as_json))
                return
            for path in paths:
                if not path.exists():
                    raise UnreadableLog(f"{path}: no such file or folder")
                logs: Iterator[Log] = read(path)
                for log in logs:
                    done.append(send(log, transport, options))
                    _report(done[-1], as_json)
    except UnreadableLog as error:
        raise fail(str(error)) from None
    except Unreachable as error:
        raise fail(f"{error} Run the import again to continue where this one stopped.", 1) from None
    finally:
        transport.close()
    _sum_up(done, as_json)
    if any(each.problem for each in done):
        raise typer.Exit(1)


@contextmanager
def _alone() -> Iterator[None]:
    """Refuse a concurrent import: neither would know what the other has sent."""
    from callboard.transport import spool_root

    root = spool_root().parent
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"{root} cannot be created: {error.strerror}", 1) from None
    with (root / "import.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise fail("another `callboard import` is running; wait until it has ended", 1) from None
        yield


def _report(done: "Imported", as_json: bool) -> None:
    if as_json:
        shown: dict[str, Any] = {
            "name": done.name,
            "run": done.run,
            "points": done.n_points,
            "lines": done.n_lines,
        }
        shown |= {"resumed": done.resumed, "replaced": done.replaced, "problem": done.problem}
        shown |= {"not_kept": dict(done.not_kept), "return_candidates": done.return_candidates}
        typer.echo(json.dumps(shown))
        return
    if done.problem is not None:
        typer.echo(f"callboard: {done.name}: {done.problem}", err=True)
        return
    nothing = done.resumed and not done.n_points and not done.n_lines
    new = "unchanged" if nothing else f"{done.n_points:,} points, {done.n_lines:,} lines"
    typer.echo(
        f"{done.run}  {done.name}: {new}" + (", instead of the earlier import" if done.replaced else "")
    )
    if done.return_candidates is not None:
        typer.echo(_without_score(done.return_candidates))


def _without_score(candidates: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in candidates[:_SHOWN_CANDIDATES])
    hint = f"name it with --metric, such as one of {shown}" if shown else "name it with --metric"
    return f"  no score: none of its metrics is known to be the return; {hint}"


def _sum_up(done: list["Imported"], as_json: bool) -> None:
    """Print how much was imported, and name what was not kept."""
    not_kept: Counter[str] = Counter()
    for each in done:
        not_kept.update(each.not_kept)
    if not as_json:
        failed = sum(each.problem is not None for each in done)
        typer.echo(
            f"{len(done) - failed:,} runs, {sum(each.n_points for each in done):,} points"
            + (f"; {failed:,} could not be imported" if failed else "")
        )
    for what, n in not_kept.most_common():
        sys.stderr.write(f"not kept: {what}" + (f" ({n:,})\n" if n > 1 else "\n"))
