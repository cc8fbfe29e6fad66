"""`callboard runs`: runs on this machine's server or another, over REST."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Column, Table

from backend.specs.problems import quoted
from backend.specs.states import ENDED, RunState
from callboard_cli import CommandGroup, Json, estimate_text, fail, log_text, printable, score_text
from callboard_cli.connection import connect, id_check, save
from callboard_cli.import_run import import_run
from callboard_cli.run_request import (
    AgentSteps,
    AlgorithmId,
    AnnealingChoice,
    Assignments,
    Device,
    EnvironmentAssignments,
    EnvironmentId,
    PresetId,
    Score,
    WallTime,
    assignments,
    run_request,
)

if TYPE_CHECKING:
    from callboard_cli.remote import Remote

MAX_COMPARED = 100
WAIT_INTERVAL_S = 1.0
_ALL = 10**9
MAX_PIPED_WIDTH = 1_000
"""Columns of a table that is not printed on a terminal; it is as wide as its cells."""

app = typer.Typer(
    cls=CommandGroup, help="Runs on this machine's server, or on CALLBOARD_URL's.", no_args_is_help=True
)


check_ids = id_check("run", "runs")
RunId = Annotated[str, typer.Argument(help="Id of a run.", callback=check_ids)]
RunIds = Annotated[list[str], typer.Argument(help="Ids of runs.", callback=check_ids)]
app.command("import")(import_run)


@app.command("list")
def list_runs(
    filter_text: Annotated[
        str | None, typer.Option("--filter", help="For example: algorithm:paac score>10 tag:new or tag:old")
    ] = None,
    state: Annotated[list[RunState] | None, typer.Option(help="In any of these states; repeatable.")] = None,
    sort: Annotated[
        str, typer.Option(help="Field to sort by; prefix it with - for descending order.")
    ] = "-created_at",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of runs.")] = 50,
    as_json: Json = False,
) -> None:
    """List runs, latest first by default."""
    params: dict[str, Any] = {"filter": filter_text, "state": [s.value for s in state or []] or None}
    params |= {"sort": sort, "spec": as_json}
    with connect() as remote:
        runs = list(remote.items("/runs", params, limit))
    if as_json:
        typer.echo(json.dumps(runs))
        return
    whole_id = Column("id", min_width=26, no_wrap=True)  # as other commands need it
    table = Table(whole_id, "name", "state", "agent steps", "score", "best", box=None, pad_edge=False)
    for run in runs:
        columns = [run["id"], printable(run["name"]), run["state"], f"{run['agent_steps']:,}"]
        table.add_row(*columns, score_text(run["score"]), score_text(run["best_return"]))
    _console().print(table)


@app.command()
def show(run_id: RunId, as_json: Json = False) -> None:
    """Show a run."""
    from callboard.display import lines_of

    with connect() as remote:
        run = remote.request("GET", f"/runs/{run_id}")
    if as_json:
        typer.echo(json.dumps(run))
        return
    for name, text in lines_of(run):
        typer.echo(f"{printable(name):28} {printable(text)}")


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
    seed: Annotated[list[int] | None, typer.Option(help="Seed; repeat for one run per seed.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    project: Annotated[str | None, typer.Option(help="Project that the run is filed under.")] = None,
    group: Annotated[str | None, typer.Option(help="Group of the run.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag; repeatable.")] = None,
    queue: Annotated[str, typer.Option(help="cpu or gpu.")] = "cpu",
    host: Annotated[str | None, typer.Option(help="Host to run on.")] = None,
    priority: Annotated[int, typer.Option(help="Runs with a higher priority start first.")] = 0,
    device: Device = "auto",
    wait: Annotated[
        bool,
        typer.Option(
            help="Wait until it has ended; exit code 1 if it failed, 3 if the server was away for 5 minutes."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Start a run, or one per seed, and print the ids."""
    body = run_request(
        algorithm,
        environment,
        preset=preset,
        stop={"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score},
        settings=setting or [],
        environment_settings=environment_setting or [],
    )
    body |= {"queue": queue, "priority": priority, "device": device, "tags": tag or []}
    named = {"name": name, "project": project, "group": group, "host": host}
    body |= {key: value for key, value in named.items() if value}
    if seed:
        body |= {"seed": seed[0]} if len(seed) == 1 else {"seeds": seed}
    with connect() as remote:
        response = remote.request("POST", "/runs", body=body)
        for warning in response["warnings"]:
            typer.echo(f"callboard: {printable(warning)}", err=True)
        _report(remote, response["items"], wait=wait, as_json=as_json)


@app.command()
def stop(
    run_ids: RunIds,
    kill: Annotated[bool, typer.Option(help="Kill them immediately, without a last checkpoint.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until they have ended.")] = False,
    as_json: Json = False,
) -> None:
    """Stop runs; each saves a last checkpoint."""
    action = "kill" if kill else "stop"
    with connect() as remote:
        _act_on_all(
            remote,
            run_ids,
            lambda run_id: remote.request("POST", f"/runs/{run_id}/{action}"),
            wait=wait,
            as_json=as_json,
        )


@app.command()
def resume(
    run_ids: RunIds,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    score: Score = None,
    annealing: AnnealingChoice = None,
    wait: Annotated[bool, typer.Option(help="Wait until they have ended.")] = False,
    as_json: Json = False,
) -> None:
    """Resume ended runs from their latest checkpoints, optionally with new stop conditions."""
    bounds = {"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    body: dict[str, Any] = ({"stop": given} if given else {}) | (
        {"annealing": annealing} if annealing else {}
    )
    with connect() as remote:
        _act_on_all(remote, run_ids, lambda run_id: _resume(remote, run_id, body), wait=wait, as_json=as_json)


@app.command()
def fork(
    run_id: RunId,
    checkpoint: Annotated[
        str | None, typer.Option(help="Id of the checkpoint to start from; default: the latest.")
    ] = None,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    score: Score = None,
    setting: Assignments = None,
    environment_setting: EnvironmentAssignments = None,
    seed: Annotated[int | None, typer.Option(help="Seed; default: the run's.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the fork.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag, in place of the run's; repeatable.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Start another run from a checkpoint of a run, with other settings or limits, and print its id."""
    stop = {"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score}
    limits = {limit: bound for limit, bound in stop.items() if bound is not None}
    body = {
        "checkpoint": checkpoint,
        "config": assignments(setting or [], "config", limits=stop),
        "environment_config": assignments(environment_setting or [], "environment_config", limits=stop),
        "stop": limits or None,
        "seed": seed,
        "name": name,
        "tags": tag or None,
    }
    body = {key: value for key, value in body.items() if value is not None}
    with connect() as remote:
        _report(
            remote, [remote.request("POST", f"/runs/{run_id}/fork", body=body)], wait=wait, as_json=as_json
        )


@app.command()
def log(
    run_id: RunId,
    search: Annotated[
        str | None, typer.Option(help="Only lines that contain this text, in small or capital letters.")
    ] = None,
    last: Annotated[
        int | None, typer.Option(min=1, max=1_000, help="Only so many of the last lines; default: all.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print further lines as they come, until the run has ended.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print the log of a run."""
    path, params = f"/runs/{run_id}/log", {"search": search} if search else {}
    with connect() as remote:
        tail = {"tail": True, "limit": last}
        lines = remote.items(path, params, _ALL) if last is None else _last(remote, path, params | tail)
        latest = _print_lines(lines, 0, as_json=as_json)
        while follow:
            has_ended = remote.request("GET", f"/runs/{run_id}")["state"] in ENDED
            latest = _print_lines(
                remote.items(path, params | {"after": latest}, _ALL), latest, as_json=as_json
            )
            if has_ended:
                break
            sleep(WAIT_INTERVAL_S)


def _last(remote: "Remote", path: str, params: dict[str, Any]) -> Iterable[dict[str, Any]]:
    items: list[dict[str, Any]] = remote.request("GET", path, params=params)["items"]
    return items


def _print_lines(lines: Iterable[dict[str, Any]], latest: int, *, as_json: bool) -> int:
    """Print lines of a log; return the id of the last one, or `latest` if there is none."""
    for line in lines:
        latest = line["id"]
        typer.echo(json.dumps(line) if as_json else printable(log_text(line)))
    return latest


@app.command()
def delete(
    run_ids: RunIds,
    permanently: Annotated[
        bool, typer.Option("--permanently", help="At once, and not so that the page can restore them.")
    ] = False,
) -> None:
    """Delete runs that do not train, with all that belongs to them; the page can restore them for an hour."""
    refusal = None
    with connect() as remote:
        for run_id in run_ids:
            try:
                remote.request("DELETE", f"/runs/{run_id}", params={"restorable": not permanently})
                typer.echo(run_id)
            except typer.Exit as error:
                refusal = error
    if refusal is not None:
        raise refusal


@app.command()
def archive(
    run_ids: RunIds,
    undo: Annotated[bool, typer.Option("--undo", help="Show them in lists again.")] = False,
    as_json: Json = False,
) -> None:
    """Hide runs that have ended from lists."""
    body = {"archived": not undo}
    with connect() as remote:
        _act_on_all(
            remote,
            run_ids,
            lambda run_id: remote.request("POST", f"/runs/{run_id}/archive", body=body),
            wait=False,
            as_json=as_json,
        )


@app.command()
def tag(
    run_ids: RunIds,
    add: Annotated[list[str] | None, typer.Option(help="Tag to add; repeatable.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Tag to remove; repeatable.")] = None,
    as_json: Json = False,
) -> None:
    """Add tags to runs, or remove them."""
    if not add and not remove:
        raise fail("--add: name a tag to add, or one to remove with --remove")
    with connect() as remote:
        for action, tags in (("tag", add), ("untag", remove)):
            if tags:
                body = {"action": action, "ids": run_ids, "tags": tags}
                for item in remote.request("POST", "/runs/bulk", body=body)["items"]:
                    if not item["done"]:
                        raise fail(f"{item['id']}: {item['detail']}")
        runs = [remote.request("GET", f"/runs/{run_id}") for run_id in run_ids]
    if as_json:
        typer.echo(json.dumps(runs if len(runs) > 1 else runs[0]))
        return
    for run in runs:
        typer.echo(printable(f"{run['id']}  {', '.join(run['tags'])}"))


@app.command()
def compare(
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of runs; or choose them by --filter.", callback=check_ids),
    ] = None,
    filter_text: Annotated[
        str | None, typer.Option("--filter", help="Compare the runs that match, such as group:nightly.")
    ] = None,
    score: Annotated[
        Literal["training", "evaluation"],
        typer.Option(help="Mean return of the last 100 training episodes, or of the latest evaluation."),
    ] = "training",
    at: Annotated[
        Literal["common", "end"],
        typer.Option(
            help="At the last step where all runs of an environment have a score, or at their ends."
        ),
    ] = "common",
    as_json: Json = False,
) -> None:
    """Compare groups of runs that differ in their seed alone, as the page Compare does."""
    if bool(run_ids) == bool(filter_text):
        raise fail("run: name the runs to compare, or choose them by --filter")
    with connect() as remote:
        if filter_text:
            # One more than can be compared: the service's message states the limit.
            runs = remote.items("/runs", {"filter": filter_text}, MAX_COMPARED + 1)
            run_ids = [run["id"] for run in runs]
        if not run_ids:
            raise fail(f"filter: no run matches {quoted(filter_text)}")
        comparison = remote.request("GET", "/comparisons", params={"run": run_ids, "score": score, "at": at})
    if as_json:
        typer.echo(json.dumps(comparison))
        return
    groups = Table("group", "runs", "IQM", "median [95 % CI]", "at agent step", box=None, pad_edge=False)
    for group in comparison["groups"]:
        step = "the last of each" if group["at_agent_steps"] is None else f"{group['at_agent_steps']:,}"
        scores = (score_text(group["iqm"] and group["iqm"]["value"]), estimate_text(group["median"]))
        n = len([run for run in group["runs"] if run["left_out"] != "repeated"])
        finished = f", {group['n_finished']} of {n} finished" if group["n_broken_off"] else ""
        groups.add_row(printable(group["name"]), f"{group['n']}{finished}", *scores, step)
    pairs = Table("A", "B", "P(A > B)", "A - B [95 % CI]", "result", box=None, pad_edge=False)
    names = {group["id"]: printable(group["name"]) for group in comparison["groups"]}
    for pair in comparison["improvements"]:
        verdict = _verdict(pair, comparison["n_comparisons"])
        measured = (f"{pair['probability']['value']:.2f}", estimate_text(pair["difference"]), verdict)
        pairs.add_row(names[pair["a"]], names[pair["b"]], *measured)
    console = _console()
    console.print(groups)
    if pairs.rows:
        console.print()
        console.print(pairs)
        n = len(pairs.rows)
        holm = f"; p-values are corrected by Holm's method for {n} comparisons, intervals are not"
        typer.echo(f"\n{comparison['method']}{holm if n > 1 else ''}.")
    elif len(groups.rows) > 1:
        typer.echo(
            "\nA comparison needs two configs in the same environment with at least two seeds each; a "
            "verdict needs at least four."
        )


def _verdict(pair: dict[str, Any], n_comparisons: int) -> str:
    adjusted = pair["p_adjusted"]
    p = "p < 0.001" if adjusted < 0.001 else f"p = {adjusted:.{3 if adjusted < 0.1 else 2}f}"
    if pair["better"] is not None:
        return f"{'A' if pair['better'] == pair['a'] else 'B'} better ({p})"
    needed = pair["seeds_to_differ"]
    if needed is None:
        return f"no significant difference ({p})"
    return f"not decided: too few seeds for p < 0.05, comparisons: {n_comparisons}; {needed} per group could"


@app.command()
def export(
    run_id: RunId,
    file_format: Annotated[
        Literal["csv", "parquet", "tensorboard"], typer.Option("--format", help="File format.")
    ] = "csv",
    output: Annotated[
        Path | None,
        typer.Option(help="File to write, named after the run by default; - for standard output."),
    ] = None,
) -> None:
    """Export all points of a run to a file."""
    ending = "tensorboard.zip" if file_format == "tensorboard" else file_format
    target = output or Path(f"{run_id}.{ending}")
    params = {"format": file_format}
    with connect() as remote, remote.download(f"/runs/{run_id}/export", params) as parts:
        if str(target) == "-":
            for part in parts:
                sys.stdout.buffer.write(part)
            return
        try:
            save(parts, target)
        except OSError as error:
            raise fail(f"output: {target}: {error.strerror}; name another file with --output") from None
    typer.echo(str(target))


def _console() -> Console:
    # In a pipe there is no width to fit into: a name that breaks would make two lines of a run.
    width = None if sys.stdout.isatty() else MAX_PIPED_WIDTH
    return Console(markup=False, emoji=False, width=width)


def _act_on_all(
    remote: "Remote", run_ids: list[str], act: Callable[[str], Any], *, wait: bool, as_json: bool
) -> None:
    """Act on every run, also after one was refused, and print those that were not.

    Raises:
        typer.Exit: one was refused; or one failed, if `wait`.
    """
    runs, refusal = [], None
    for run_id in run_ids:
        try:
            runs.append(act(run_id))
        except typer.Exit as error:
            refusal = error
    if runs:
        _report(remote, runs, wait=wait, as_json=as_json)
    if refusal is not None:
        raise refusal


def _report(remote: "Remote", runs: list[dict[str, Any]], *, wait: bool, as_json: bool) -> None:
    """Print runs, after they have ended if `wait`; exit code 1 if one failed."""
    if wait:
        runs = [remote.wait_until(lambda run: run["state"] in ENDED, f"/runs/{run['id']}") for run in runs]
    if as_json:
        typer.echo(json.dumps(runs if len(runs) > 1 else runs[0]))
    else:
        for run in runs:
            ended = f"{run['id']}  {run['state']}: {printable(run['state_reason'])}"
            typer.echo(ended if wait else run["id"])
    if wait and any(run["state"] == RunState.FAILED for run in runs):
        raise typer.Exit(1)


def _resume(remote: "Remote", run_id: str, body: dict[str, Any]) -> Any:
    """Resume a run, and print what its new limits do to an annealed learning rate."""
    from backend.specs.annealing import annealing_notice
    from backend.specs.run import parse_run_spec

    before = remote.request("GET", f"/runs/{run_id}")
    after = remote.request("POST", f"/runs/{run_id}/resume", body=body)
    was, now = parse_run_spec(before["spec"]), parse_run_spec(after["spec"])
    if (notice := annealing_notice(was, now, before["agent_steps"])) is not None:
        typer.echo(f"callboard: {run_id}: {notice}; see --annealing", err=True)
    return after
