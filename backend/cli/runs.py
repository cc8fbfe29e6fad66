"""`callboard runs`: runs on this machine's server or another's, over REST."""

import json
import sys
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from backend.cli.asked_run import (
    AgentSteps,
    AlgorithmId,
    Assignments,
    Device,
    EnvironmentAssignments,
    EnvironmentId,
    PresetId,
    Score,
    WallTime,
    asked_run,
)
from backend.cli.import_run import import_run
from backend.cli.terminal import fail
from backend.settings import Settings
from backend.specs.states import ENDED, RunState

if TYPE_CHECKING:
    from backend.cli.remote import Remote

WAIT_INTERVAL_S = 1.0

app = typer.Typer(help="Runs on this machine's server, or on CALLBOARD_URL's.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunIds = Annotated[list[str], typer.Argument(help="Ids of runs.")]
app.command("import")(import_run)


@app.command("list")
def list_runs(
    filter_text: Annotated[
        str | None, typer.Option("--filter", help="Such as: algorithm:paac score>10 tag:new or tag:old")
    ] = None,
    state: Annotated[list[RunState] | None, typer.Option(help="Any of these.")] = None,
    sort: Annotated[str, typer.Option(help="A field; - before it: largest first.")] = "-created_at",
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 50,
    as_json: Json = False,
) -> None:
    """List runs, the newest first."""
    params = {"filter": filter_text, "state": [s.value for s in state or []] or None, "sort": sort}
    with _remote() as remote:
        found = list(remote.items("/runs", params, limit))
    if as_json:
        typer.echo(json.dumps(found))
        return
    table = Table("id", "name", "state", "agent steps", "score", "best", box=None, pad_edge=False)
    for run in found:
        columns = [run["id"], run["name"], run["state"], f"{run['agent_steps']:,}"]
        table.add_row(*columns, _number(run["score"]), _number(run["best_return"]))
    Console().print(table)


@app.command()
def show(run_id: Annotated[str, typer.Argument(help="Id of a run.")], as_json: Json = False) -> None:
    """Show a run."""
    with _remote() as remote:
        run = remote.ask("GET", f"/runs/{run_id}")
    if as_json:
        typer.echo(json.dumps(run))
        return
    for name, value in run.items():
        if value not in (None, "", []):
            typer.echo(f"{name:28} {json.dumps(value) if isinstance(value, dict | list) else value}")


@app.command()
def start(
    algorithm: AlgorithmId,
    environment: EnvironmentId,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    score: Score = None,
    preset: PresetId = None,
    setting: Assignments = None,
    environment_setting: EnvironmentAssignments = None,
    seed: Annotated[list[int] | None, typer.Option(help="Given twice or more: one run a seed.")] = None,
    name: Annotated[str | None, typer.Option(help="What to call it.")] = None,
    group: Annotated[str | None, typer.Option(help="Group it belongs to.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tags.")] = None,
    queue: Annotated[str, typer.Option(help="cpu or gpu.")] = "cpu",
    host: Annotated[str | None, typer.Option(help="The host that is to take it.")] = None,
    priority: Annotated[int, typer.Option(help="Higher goes first.")] = 0,
    device: Device = "auto",
    wait: Annotated[bool, typer.Option(help="Wait until it has ended; exit code 1 where it failed.")] = False,
    as_json: Json = False,
) -> None:
    """Start a run, or one a seed, and print its id."""
    body = asked_run(
        algorithm,
        environment,
        preset=preset,
        stop={"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score},
        settings=setting or [],
        environment_settings=environment_setting or [],
    )
    body |= {"queue": queue, "priority": priority, "device": device, "tags": tag or []}
    body |= {key: value for key, value in (("name", name), ("group", group), ("host", host)) if value}
    if seed:
        body |= {"seed": seed[0]} if len(seed) == 1 else {"seeds": seed}
    with _remote() as remote:
        answer = remote.ask("POST", "/runs", body=body)
        _tell(remote, answer.get("items", [answer]), wait=wait, as_json=as_json)


@app.command()
def stop(
    run_ids: RunIds,
    kill: Annotated[bool, typer.Option(help="End them at once, without a last checkpoint.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until they have ended.")] = False,
    as_json: Json = False,
) -> None:
    """Stop runs, keeping a checkpoint of each."""
    action = "kill" if kill else "stop"
    with _remote() as remote:
        asked = [remote.ask("POST", f"/runs/{run_id}/{action}") for run_id in run_ids]
        _tell(remote, asked, wait=wait, as_json=as_json)


@app.command()
def resume(
    run_ids: RunIds,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    score: Score = None,
    wait: Annotated[bool, typer.Option(help="Wait until they have ended.")] = False,
    as_json: Json = False,
) -> None:
    """Have ended runs go on from their newest checkpoints, with other bounds where given."""
    bounds = {"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    body = {"stop": given} if given else {}
    with _remote() as remote:
        asked = [remote.ask("POST", f"/runs/{run_id}/resume", body=body) for run_id in run_ids]
        _tell(remote, asked, wait=wait, as_json=as_json)


@app.command()
def export(
    run_id: Annotated[str, typer.Argument(help="Id of a run.")],
    file_format: Annotated[
        Literal["csv", "parquet", "tensorboard"], typer.Option("--format", help="What to write.")
    ] = "csv",
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; by default named after the run; - for standard output."),
    ] = None,
) -> None:
    """Write every point of a run to a file."""
    ending = "tensorboard.zip" if file_format == "tensorboard" else file_format
    target = output or Path(f"{run_id}.{ending}")
    params = {"format": file_format}
    with _remote() as remote, remote.download(f"/runs/{run_id}/export", params) as parts:
        if str(target) == "-":
            for part in parts:
                sys.stdout.buffer.write(part)
            return
        try:
            with target.open("wb") as file:
                for part in parts:
                    file.write(part)
        except OSError as error:
            raise fail(f"output: {error}") from None
    typer.echo(str(target))


def _remote() -> "Remote":
    # For a fifth of what `callboard --help` takes, httpx waits until it is needed.
    from backend.cli.remote import Remote

    return Remote(Settings())


def _tell(remote: "Remote", asked: list[dict[str, Any]], *, wait: bool, as_json: bool) -> None:
    """Print runs as they are, or as they have ended; exit code 1 where one failed."""
    runs = [_ended(remote, run["id"]) for run in asked] if wait else asked
    if as_json:
        typer.echo(json.dumps(runs if len(runs) > 1 else runs[0]))
    else:
        for run in runs:
            typer.echo(f"{run['id']}  {run['state']}: {run['state_reason']}" if wait else run["id"])
    if wait and any(run["state"] == RunState.FAILED for run in runs):
        raise typer.Exit(1)


def _ended(remote: "Remote", run_id: str) -> Any:
    while (run := remote.ask("GET", f"/runs/{run_id}"))["state"] not in ENDED:
        sleep(WAIT_INTERVAL_S)
    return run


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
