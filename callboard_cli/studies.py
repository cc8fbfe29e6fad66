"""`callboard studies`: the papers' experiments and studies of one's own, over REST."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Column, Table

from callboard_cli import CommandGroup, Json, fail, printable, score_text
from callboard_cli.connection import act, connect, format_counts, id_check, report_runs_of, save

app = typer.Typer(
    cls=CommandGroup,
    help="The papers' figures and tables as studies, on this machine's server or CALLBOARD_URL's.",
    no_args_is_help=True,
)

Wait = Annotated[bool, typer.Option(help="Wait until it has ended.")]


StudyId = Annotated[str, typer.Argument(help="Id of a study.", callback=id_check("study", "studies"))]


@app.command("list")
def list_studies(
    papers: Annotated[
        bool, typer.Option("--papers", help="The papers' figures and tables that can be started, instead.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of studies.")] = 50,
    as_json: Json = False,
) -> None:
    """List studies, latest first."""
    with connect() as remote:
        if papers:
            _list_papers(remote.request("GET", "/papers")["items"], as_json=as_json)
            return
        studies = list(remote.items("/studies", {}, limit))
    if as_json:
        typer.echo(json.dumps(studies))
        return
    whole_id = Column("id", min_width=26, no_wrap=True)  # as other commands need it
    table = Table(whole_id, "name", "state", "runs", box=None, pad_edge=False)
    for study in studies:
        table.add_row(study["id"], printable(study["name"]), study["state"], format_counts(study["runs"]))
    Console(markup=False, emoji=False).print(table)


def _list_papers(papers: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(papers))
        return
    from callboard.display import counted

    table = Table("item", "paper", "figure or table", "scales", box=None, pad_edge=False)
    for paper in papers:
        for item in paper["items"]:
            scales = ", ".join(
                f"{scale['scale']} ({counted(scale['n_runs'], 'run')})" for scale in item["scales"]
            )
            what = f"{item['label']}: {item['title']}"
            table.add_row(item["id"], paper["short"], what, scales or item["needs"] or f"see {item['page']}")
    Console(markup=False, emoji=False).print(table)


@app.command()
def start(
    item: Annotated[
        str | None, typer.Argument(help="A figure or table, such as a3c-figure-2: see `list --papers`.")
    ] = None,
    scale: Annotated[
        Literal["minutes", "hours", "paper"], typer.Option(help="How much of its experiment is repeated.")
    ] = "minutes",
    file: Annotated[
        Path | None, typer.Option(help="A study of one's own, as JSON, instead of a figure or table.")
    ] = None,
    starts: Annotated[
        list[str] | None,
        typer.Option(
            help="Start set of a game, as in ALE/Pong-v5=agent_starts:pong: one for every game of the scale."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    project: Annotated[str | None, typer.Option(help="Project that the runs are filed under.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print what it costs; start nothing.")] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Start a figure or table of a paper, or a study of one's own, and print its id."""
    if (item is None) == (file is None):
        raise fail("give an item, such as a3c-figure-2, or --file")
    body: dict[str, Any] = {"item": item, "scale": scale} if file is None else {"study": _read(file)}
    if name is not None:
        body["name"] = name
    if project is not None:
        body["project"] = project
    if starts:
        if not all("=" in choice for choice in starts):
            raise fail("--starts: give GAME=PROTOCOL, as in ALE/Pong-v5=agent_starts:pong")
        body["starts"] = dict(choice.split("=", 1) for choice in starts)
    with connect() as remote:
        if estimate:
            _print_estimate(remote.request("POST", "/studies/estimate", body=body), as_json=as_json)
            return
        report_runs_of(
            remote, "/studies", remote.request("POST", "/studies", body=body), wait=wait, as_json=as_json
        )


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise fail(f"--file: {error.strerror}: {file}") from None
    except ValueError as error:
        raise fail(f"--file: {file} is not JSON: {error}") from None


def _print_estimate(cost: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(cost))
        return
    reused = f", {cost['n_reused']:,} of which exist" if cost["n_reused"] else ""
    typer.echo(f"runs: {cost['n_runs']:,}{reused}")
    if cost["agent_steps"] is not None:
        typer.echo(f"agent steps: {cost['agent_steps']:,}")
    kinds = ", ".join(f"{pair['algorithm']} on {pair['environment']}" for pair in cost["unmeasured"])
    measured = None if cost["time_s"] is None else f"{cost['time_s'] / 60:.1f} min on {cost['slots']} slots"
    unknown = f"not measured here yet: {kinds}" if kinds else "not known, since the runs end at a score"
    typer.echo(f"time: {measured or unknown}")
    if cost["minutes_on_two_cores"] is not None:
        typer.echo(f"on two idle cores: {cost['minutes_on_two_cores']:g} min")
    typer.echo(f"memory, a run at most: {cost['memory_bytes'] / 2**30:,.1f} GiB")
    typer.echo(f"processes, a run at most: {cost['processes']:,}")
    for warning in cost["warnings"]:
        typer.echo(f"warning: {warning}")
    typer.echo(f"disk: {cost['disk_bytes'] / 2**20:,.0f} MiB")
    for difference in cost["differs"]:
        typer.echo(printable(f"differs: {difference}"))


@app.command()
def show(study_id: StudyId, as_json: Json = False) -> None:
    """Show a study and how far each arm is."""
    with connect() as remote:
        study = remote.request("GET", f"/studies/{study_id}")
    if as_json:
        typer.echo(json.dumps(study))
    else:
        print_study(study)


def print_study(study: dict[str, Any]) -> None:
    """Print a study and how far each arm is."""
    typer.echo(printable(f"{study['name']}: {study['state']}, {study['state_reason']}"))
    typer.echo(f"runs: {format_counts(study['runs'])}")
    for item in study["items"]:
        typer.echo(printable(f"{item['label']}: {item['claim']}"))
    table = Table("environment", "arm", "runs", "mean training score", box=None, pad_edge=False)
    for cell in study["progress"]:
        table.add_row(
            cell["environment"],
            printable(cell["arm"]),
            format_counts(cell["runs"]),
            score_text(cell["score"]),
        )
    Console(markup=False, emoji=False).print(table)


@app.command()
def stop(study_id: StudyId, as_json: Json = False) -> None:
    """Start no further run of a study, and stop those that have not ended."""
    with connect() as remote:
        act(remote, "/studies", study_id, "stop", as_json=as_json)


@app.command()
def retry(study_id: StudyId, wait: Wait = False, as_json: Json = False) -> None:
    """Queue a study's failed and stopped runs again, fill its empty and changed cells, and continue it."""
    with connect() as remote:
        act(remote, "/studies", study_id, "retry", wait=wait, as_json=as_json)


@app.command()
def extend(
    study_id: StudyId,
    draws: Annotated[
        int | None, typer.Option(help="Draws of each arm on each environment, with those so far.")
    ] = None,
    environment: Annotated[list[str] | None, typer.Option(help="A further environment. Repeatable.")] = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Give a study more draws or environments, and continue it."""
    body: dict[str, Any] = {"environments": environment} if environment else {}
    if draws is not None:
        body["draws"] = draws
    with connect() as remote:
        act(remote, "/studies", study_id, "extend", body=body, wait=wait, as_json=as_json)


@app.command()
def export(
    study_id: StudyId,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The zip file; default: study-ID.zip.")
    ] = None,
) -> None:
    """Save a study as one folder in a zip file: figures, data, settings, commands and versions."""
    path = output or Path(f"study-{study_id}.zip")
    with connect() as remote, remote.download(f"/studies/{study_id}/export", {}) as parts:
        try:
            save(parts, path)
        except OSError as error:
            raise fail(f"--output: {error.strerror}: {path}", 1) from None
    typer.echo(path)


@app.command()
def delete(study_id: StudyId) -> None:
    """Delete an ended study; its runs stay."""
    with connect() as remote:
        remote.request("DELETE", f"/studies/{study_id}")
