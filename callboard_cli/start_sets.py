"""`callboard start-sets`: states of recorded games from which agents are evaluated, over REST."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Column, Table

from callboard_cli import CommandGroup, Json, fail, printable
from callboard_cli.connection import connect, id_check, save

if TYPE_CHECKING:
    from callboard_cli.remote import Remote


app = typer.Typer(
    cls=CommandGroup,
    help="States of recorded games, to evaluate agents from, on this machine's server or CALLBOARD_URL's.",
    no_args_is_help=True,
)

Wait = Annotated[bool, typer.Option(help="Wait until a worker has verified it.")]


SetId = Annotated[str, typer.Argument(help="Id of a start set.", callback=id_check("set", "start-sets"))]


@app.command("list")
def list_start_sets(
    environment: Annotated[str | None, typer.Option(help="Only sets of this environment.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sets.")] = 50,
    as_json: Json = False,
) -> None:
    """List start sets, latest first."""
    with connect() as remote:
        given = {} if environment is None else {"environment": environment}
        rows = list(remote.items("/start-sets", given, limit))
    if as_json:
        typer.echo(json.dumps(rows))
        return
    whole_id = Column("id", min_width=26, no_wrap=True)  # as other commands need it
    table = Table(
        whole_id, "set", "environment", "points", "games", "source", "state", box=None, pad_edge=False
    )
    for row in rows:
        name = f"{row['name']}@{row['version']}"
        counts = (f"{row['n_points']:,}", f"{row['n_games']:,}")
        table.add_row(row["id"], name, row["environment"], *counts, row["source"], row["state"])
    Console(markup=False, emoji=False).print(table)


@app.command()
def create(
    name: Annotated[
        str, typer.Argument(help="Small letters, digits and hyphens; a used one: its next version.")
    ],
    run: Annotated[str | None, typer.Option(help="Id of a run: its recorded episodes are the games.")] = None,
    kind: Annotated[
        Literal["training", "evaluation"] | None, typer.Option(help="With --run: only such episodes.")
    ] = None,
    episode: Annotated[
        list[str] | None, typer.Option(help="Id of a recorded episode, instead of --run. Repeatable.")
    ] = None,
    environment: Annotated[
        str | None, typer.Option(help="Id of a game: people's recordings of it are the games.")
    ] = None,
    recording: Annotated[
        list[str] | None,
        typer.Option(help="Id of a recording of a person's or a script's game, instead. Repeatable."),
    ] = None,
    points: Annotated[int | None, typer.Option(help="States to sample; default: 100.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the sampling; default: 0.")] = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Create a start set from recorded games of agents or people, and print its id."""
    if sum(map(bool, (run, episode, environment, recording))) != 1:
        raise fail("give one of --run, --episode, --environment and --recording")
    given = {
        "run": run,
        "kind": kind,
        "episodes": episode or None,
        "environment": environment,
        "recordings": recording or None,
        "points": points,
        "seed": seed,
    }
    body = {"name": name} | {field: value for field, value in given.items() if value is not None}
    with connect() as remote:
        _report(remote, remote.request("POST", "/start-sets", body=body), wait=wait, as_json=as_json)


@app.command()
def show(set_id: SetId, as_json: Json = False) -> None:
    """Show a start set."""
    with connect() as remote:
        row = remote.request("GET", f"/start-sets/{set_id}")
    if as_json:
        typer.echo(json.dumps(row))
        return
    error = "" if row["error"] is None else f": {row['error']}"
    typer.echo(printable(f"{row['name']}@{row['version']}: {row['state']}{error}"))
    typer.echo(printable(f"{row['environment']}: {row['caption']}"))
    typer.echo(printable(f"source: {row['source']}, {row['origin']}"))
    typer.echo(f"protocols: {', '.join(row['protocols'])}")


@app.command("import")
def import_start_set(
    file: Annotated[Path, typer.Argument(help="An exported set.")],
    name: Annotated[str | None, typer.Option(help="Another name than the file's.")] = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Import an exported start set, and print its id."""
    try:
        body: dict[str, Any] = {"file": json.loads(file.read_text())}
    except OSError as error:
        raise fail(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise fail(f"{file} is not JSON: {error}") from None
    if name is not None:
        body["name"] = name
    with connect() as remote:
        _report(remote, remote.request("POST", "/start-sets/import", body=body), wait=wait, as_json=as_json)


@app.command()
def export(
    set_id: SetId,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; default: start-set-ID.json.")
    ] = None,
) -> None:
    """Save a verified start set as a file that another installation can import."""
    path = output or Path(f"start-set-{set_id}.json")
    with connect() as remote, remote.download(f"/start-sets/{set_id}/export", {}) as parts:
        try:
            save(parts, path)
        except OSError as error:
            raise fail(f"--output: {error.strerror}: {path}", 1) from None
    typer.echo(path)


@app.command()
def delete(set_id: SetId) -> None:
    """Delete a version of a start set; scores from it stay."""
    with connect() as remote:
        remote.request("DELETE", f"/start-sets/{set_id}")


def _report(remote: "Remote", row: dict[str, Any], *, wait: bool, as_json: bool) -> None:
    """Print a set, after it is verified if `wait`.

    Raises:
        Exit: `wait`, and it could not be verified.
    """
    if wait:
        row = remote.wait_until(lambda row: row["state"] != "verifying", f"/start-sets/{row['id']}")
    typer.echo(json.dumps(row) if as_json else row["id"])
    if row["state"] == "failed":
        raise fail(f"{row['name']}@{row['version']} could not be verified: {printable(row['error'])}", 1)
