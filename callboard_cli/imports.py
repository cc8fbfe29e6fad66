"""`callboard import`: record logs of other tools as runs of a server, over REST."""

from pathlib import Path
from typing import Annotated

import typer

from backend.specs.run_fields import MAX_EXTERNAL_SEED
from callboard_cli import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    help="Record logs of other tools as runs. (For runs of Callboard itself: `callboard runs import`.)",
    no_args_is_help=True,
)

Algorithm = Annotated[str | None, typer.Option(help="Name of the algorithm, instead of the log's.")]
Environment = Annotated[
    str | None, typer.Option(help="Id of the environment, such as ALE/Pong-v5, instead of the log's.")
]
Seed = Annotated[int | None, typer.Option(min=0, max=MAX_EXTERNAL_SEED, help="Seed, instead of the log's.")]
Project = Annotated[str | None, typer.Option(help="Project of the runs, instead of the log's.")]
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

_EVENTS_HELP = """Import TensorBoard's event files: scalars, texts and hyperparameters.

Each folder with event files is a run. A second import of the same files adds only what is new; with other
options it replaces the first.
"""
_ROWS_HELP = """Import {}, with a row for each step and a column for each metric, or a row for each point.

A second import of the same file adds only new rows; with other options it replaces the first.
"""


Step = Annotated[
    float | None,
    typer.Option(
        min=1e-9,
        max=1e12,
        help="Agent steps for each step of the log, if it counts iterations, or steps of each of several "
        "environments.",
    ),
]


@app.command("wandb", help="Import offline runs of W&B: a folder `wandb`, or a file `run-….wandb`.")
@app.command("trackio", help="Import Trackio's runs: a project's SQLite file, or a folder of them.")
@app.command("mlflow", help="Import MLflow's runs: a folder `mlruns`, or the file of an SQLite store.")
@app.command("tensorboard", help=_EVENTS_HELP)
def logs(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="A folder or a file.")],
    algorithm: Algorithm = None,
    environment: Environment = None,
    seed: Seed = None,
    project: Project = None,
    group: Group = None,
    tag: Tag = None,
    metric: Metrics = None,
    step: Step = None,
    follow: Follow = False,
    as_json: Json = False,
) -> None:
    """Import logs whose metrics have their steps; the name of the command says which."""
    from callboard.imports.command import import_logs

    fields = {"algorithm": algorithm, "environment": environment, "seed": seed} | {
        "project": project,
        "group": group,
        "tags": tag,
    }
    kind = context.info_name or "tensorboard"
    raise typer.Exit(
        import_logs(kind, [path], fields, metric or (), step=step, follow=follow, as_json=as_json)
    )


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
            help="Column of agent steps; default: the first that is known, such as agent_steps, global_step "
            "or step. COLUMN*FACTOR: agent steps for each of its steps. A column such as training_iteration "
            "counts iterations."
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
    project: Project = None,
    group: Group = None,
    tag: Tag = None,
    follow: Follow = False,
    as_json: Json = False,
) -> None:
    """Import files of rows; the name of the command says which."""
    from callboard.imports.command import import_rows

    fields = {"algorithm": algorithm, "environment": environment, "seed": seed} | {
        "project": project,
        "group": group,
        "tags": tag,
    }
    kind = context.info_name or "csv"
    code = import_rows(
        kind,
        path,
        fields,
        metric or (),
        step=step,
        wall_time=wall_time,
        run=run,
        follow=follow,
        as_json=as_json,
    )
    raise typer.Exit(code)
