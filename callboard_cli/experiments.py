"""`callboard experiments`: sweeps and studies, over REST. `callboard sweeps` and `callboard studies` have the
commands of one kind."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from callboard_cli import CommandGroup, Json, fail, printable, studies, sweeps
from callboard_cli.connection import act, connect, format_counts, id_check

if TYPE_CHECKING:
    from callboard_cli.remote import Remote

app = typer.Typer(
    cls=CommandGroup,
    help="Sweeps and studies on this machine's server, or on CALLBOARD_URL's.",
    no_args_is_help=True,
)

ExperimentId = Annotated[
    str,
    typer.Argument(help="Id of a sweep or a study.", callback=id_check("sweep or study", "experiments")),
]
Wait = Annotated[bool, typer.Option(help="Wait until it has ended.")]

_KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "sweep": ("/sweeps", sweeps.print_sweep),
    "study": ("/studies", studies.print_study),
}

app.command("start-sweep")(sweeps.start)
app.command("start-study")(studies.start)


@app.command("list")
def list_experiments(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sweeps and studies.")] = 50,
    as_json: Json = False,
) -> None:
    """List sweeps and studies, latest first."""
    with connect() as remote:
        rows = [
            {"kind": kind} | row
            for kind, (path, _) in _KINDS.items()
            for row in remote.items(path, {}, limit)
        ]
    rows = sorted(rows, key=lambda row: row["created_at"], reverse=True)[:limit]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    whole_id = Column("id", min_width=26, no_wrap=True)  # as other commands need it
    table = Table(whole_id, "kind", "name", "state", "runs", box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            row["id"], row["kind"], printable(row["name"]), row["state"], format_counts(row["runs"])
        )
    Console(markup=False, emoji=False).print(table)


@app.command()
def show(experiment_id: ExperimentId, as_json: Json = False) -> None:
    """Show a sweep or a study."""
    with connect() as remote:
        kind = _kind_of(remote, experiment_id)
        path, show_row = _KINDS[kind]
        row = remote.request("GET", f"{path}/{experiment_id}")
    if as_json:
        typer.echo(json.dumps({"kind": kind} | row))
    else:
        show_row(row)


@app.command()
def stop(experiment_id: ExperimentId, as_json: Json = False) -> None:
    """Start no further run of a sweep or a study, and stop those that have not ended."""
    with connect() as remote:
        act(remote, _path_of(remote, experiment_id), experiment_id, "stop", as_json=as_json)


@app.command()
def retry(experiment_id: ExperimentId, wait: Wait = False, as_json: Json = False) -> None:
    """Queue failed and stopped runs again, start others in place of deleted and changed ones, and go on."""
    with connect() as remote:
        act(remote, _path_of(remote, experiment_id), experiment_id, "retry", wait=wait, as_json=as_json)


@app.command("run", context_settings={"ignore_unknown_options": True})
def run_scripts(
    sweep_id: Annotated[
        str, typer.Argument(metavar="SWEEP", help="Id of a sweep.", callback=id_check("sweep", "sweeps"))
    ],
    command: Annotated[list[str], typer.Argument(help="Your script, such as `python train.py`.")],
) -> None:
    """Start your script in this terminal for each run of a sweep: `run SWEEP -- python train.py`.

    It gets the run's settings as --name=value and logs to the run, by `callboard.init`. Several terminals and
    machines share a sweep. Ctrl-C stops the run, and leaves its configuration to others.
    """
    from callboard_cli import script_runner

    script_runner.run_scripts(sweep_id, command)


app.command("extend-sweep")(sweeps.extend)
app.command("extend-study")(studies.extend)
app.command("export-study")(studies.export)


@app.command()
def delete(experiment_id: ExperimentId) -> None:
    """Delete an ended sweep or study; its runs stay."""
    with connect() as remote:
        remote.request("DELETE", f"{_path_of(remote, experiment_id)}/{experiment_id}")


def _kind_of(remote: "Remote", experiment_id: str) -> str:
    for kind, (path, _) in _KINDS.items():
        if remote.has(f"{path}/{experiment_id}"):
            return kind
    raise fail(f"sweep or study {experiment_id} does not exist or has been deleted")


def _path_of(remote: "Remote", experiment_id: str) -> str:
    return _KINDS[_kind_of(remote, experiment_id)][0]
