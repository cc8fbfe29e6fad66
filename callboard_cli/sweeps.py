"""`callboard sweeps`: sweeps on this machine's server or another, over REST."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

import typer
from rich.console import Console
from rich.table import Column, Table

from backend.experiments.specs.sweep import Distribution
from backend.specs.problems import quoted, similar_names
from callboard_cli import CommandGroup, Json, estimate_text, fail, printable, score_text
from callboard_cli.connection import act, connect, format_counts, id_check, report_runs_of
from callboard_cli.run_request import (
    AgentSteps,
    AlgorithmId,
    Assignments,
    Device,
    EnvironmentAssignments,
    EnvironmentId,
    PresetId,
    WallTime,
    run_request,
    value_of,
    whole_number,
)

app = typer.Typer(
    cls=CommandGroup, help="Sweeps on this machine's server, or on CALLBOARD_URL's.", no_args_is_help=True
)


SweepId = Annotated[str, typer.Argument(help="Id of a sweep.", callback=id_check("sweep", "sweeps"))]
Vary = Annotated[
    list[str],
    typer.Option(
        help="A setting and its values: learning_rate=0.001,0.01, or a range: beta=log_uniform:1e-4:1e-2 "
        "(uniform, log_uniform, integer, log_integer; in a grid followed by :n, the number of values). "
        "Repeatable; environment_config.<name> and stop.<name> vary too."
    ),
]
MaxSeeds = Annotated[int | None, typer.Option(help="Seeds of each configuration, at most.")]
Configurations = Annotated[
    int | None, typer.Option(help="Number of random configurations, instead of all combinations.")
]
MaxRuns = Annotated[int | None, typer.Option(help="Maximum number of runs.")]
MaxAgentSteps = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        metavar="<int>",
        help="Maximum agent steps of all runs; no run is started after them.",
    ),
]
MaxTime = Annotated[
    float | None, typer.Option("--max-time-s", help="Maximum time; no run is started after it.")
]


@app.command()
def start(
    algorithm: AlgorithmId,
    environment: EnvironmentId,
    vary: Vary,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    preset: PresetId = None,
    setting: Assignments = None,
    environment_setting: EnvironmentAssignments = None,
    name: Annotated[str | None, typer.Option(help="Name of the sweep.")] = None,
    configurations: Configurations = None,
    sampler_seed: Annotated[int, typer.Option(help="Seed of the random configurations.")] = 0,
    tpe: Annotated[
        bool,
        typer.Option(
            "--tpe", help="Choose all but the first ten configurations by the scores so far (Optuna's TPE)."
        ),
    ] = False,
    max_seeds: MaxSeeds = None,
    distinct_seeds: Annotated[
        bool, typer.Option("--distinct-seeds", help="Seeds of its own for each configuration.")
    ] = False,
    initial_seeds: Annotated[
        int | None, typer.Option(help="Seeds of each configuration before the first comparison.")
    ] = None,
    confidence: Annotated[float | None, typer.Option(help="Confidence required for elimination.")] = None,
    racing: Annotated[
        bool, typer.Option(help="Eliminate configurations that are worse, or give all of them all seeds.")
    ] = True,
    objective: Annotated[
        Literal["training", "evaluation"], typer.Option(help="Whose scores are compared.")
    ] = "training",
    protocol: Annotated[str | None, typer.Option(help="Protocol of the evaluations.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Runs queued or running at the same time.")] = None,
    max_runs: MaxRuns = None,
    max_agent_steps: MaxAgentSteps = None,
    max_time_s: MaxTime = None,
    project: Annotated[str | None, typer.Option(help="Project that the runs are filed under.")] = None,
    priority: Annotated[int, typer.Option(help="Runs with a higher priority start first.")] = 0,
    queue: Annotated[str, typer.Option(help="cpu or gpu.")] = "cpu",
    device: Device = "auto",
    script: Annotated[
        bool,
        typer.Option(
            "--script",
            help="Of a script of your own, of any algorithm: `callboard experiments run` starts it.",
        ),
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until it has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Start a sweep, and print its id."""
    if tpe and configurations is None:
        raise fail("--tpe: needs --configurations, how many it tries")
    space = _parse_dimensions("--vary", vary, with_n=configurations is None)
    run = run_request(
        algorithm,
        environment,
        preset=preset,
        stop={"agent_steps": agent_steps, "wall_time_s": wall_time_s},
        settings=setting or [],
        environment_settings=environment_setting or [],
        needs_limit=not script and not any(path.startswith("stop.") for path in space),
    )
    placement: dict[str, Any] = {"priority": priority, "queue": queue, "device": device}
    if script:
        run = {name: value for name, value in run.items() if name not in ("environment_config", "stop")}
        placement = {"origin": "external"}
    option_of = {_path(text, "config"): "--set" for text in setting or []}
    option_of |= {
        _path(text, "environment_config"): "--set-environment" for text in environment_setting or []
    }
    option_of |= {"stop.agent_steps": "--agent-steps"} if agent_steps is not None else {}
    option_of |= {"stop.wall_time_s": "--wall-time-s"} if wall_time_s is not None else {}
    for path in space:  # a preset may have what varies
        if path in option_of:
            raise fail(
                f"--vary {path.removeprefix('config.')}: is also set by {option_of[path]}: give it once"
            )
        section, _, field = path.partition(".")
        run.get(section, {}).pop(field, None)
    race = {"initial_seeds": initial_seeds, "confidence": confidence}
    body: dict[str, Any] = {
        "name": name or f"{algorithm} on {environment}",
        "run": run | _without_none({"project": project}) | placement,
        "space": space,
        "sampler": "tpe" if tpe else "grid" if configurations is None else "random",
        "sampler_seed": sampler_seed,
        "racing": _without_none(race) if racing and not tpe else None,
        "objective": objective,
        "distinct_seeds": distinct_seeds,
        "budget": _budget_body(max_runs, max_agent_steps, max_time_s),
    }
    optional = {"n_configurations": configurations, "max_seeds": max_seeds, "concurrency": concurrency}
    body |= _without_none(optional | {"protocol": protocol})
    with connect() as remote:
        report_runs_of(
            remote, "/sweeps", remote.request("POST", "/sweeps", body=body), wait=wait, as_json=as_json
        )


@app.command("list")
def list_sweeps(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sweeps.")] = 50, as_json: Json = False
) -> None:
    """List sweeps, latest first."""
    with connect() as remote:
        sweeps = list(remote.items("/sweeps", {}, limit))
    if as_json:
        typer.echo(json.dumps(sweeps))
        return
    whole_id = Column("id", min_width=26, no_wrap=True)  # as other commands need it
    table = Table(whole_id, "name", "state", "configurations", "runs", box=None, pad_edge=False)
    for sweep in sweeps:
        remaining = f"{sweep['n_active']} of {sweep['n_configurations']}"
        table.add_row(
            sweep["id"], printable(sweep["name"]), sweep["state"], remaining, format_counts(sweep["runs"])
        )
    Console(markup=False, emoji=False).print(table)


@app.command()
def show(sweep_id: SweepId, as_json: Json = False) -> None:
    """Show a sweep and its configurations, the best first."""
    with connect() as remote:
        sweep = remote.request("GET", f"/sweeps/{sweep_id}")
    if as_json:
        typer.echo(json.dumps(sweep))
    else:
        print_sweep(sweep)


def print_sweep(sweep: dict[str, Any]) -> None:
    """Print a sweep and its configurations, the best first."""
    typer.echo(printable(f"{sweep['name']}: {sweep['state']}, {sweep['state_reason']}"))
    saved = f"; {sweep['n_not_needed']} of {sweep['n_planned']} not needed" if sweep["n_not_needed"] else ""
    typer.echo(f"runs: {format_counts(sweep['runs'])}{saved}")
    fields = [*sweep["spec"]["space"]]
    heads = [field.removeprefix("config.") for field in fields]
    table = Table(*heads, "seeds", "IQM", "median [95 % CI]", "", box=None, pad_edge=False)
    ranked = sorted(
        sweep["configurations"],
        key=lambda configuration: (
            configuration["eliminated"] is not None,
            configuration["iqm"] is None,
            -(configuration["iqm"] or 0.0),
        ),
    )
    for configuration in ranked:
        values = [str(configuration["settings"][field]) for field in fields]
        table.add_row(
            *values,
            str(configuration["n"]),
            score_text(configuration["iqm"]),
            estimate_text(configuration["median"]),
            configuration["eliminated"],
        )
    Console(markup=False, emoji=False).print(table)
    if (best := sweep["best"]) is not None:
        settings = ", ".join(
            f"{head} {best['settings'][field]}" for head, field in zip(heads, fields, strict=True)
        )
        others = sum(configuration["eliminated"] is None for configuration in ranked) - 1
        shown = f"not shown to be better than {others} other{'s' if others > 1 else ''}"
        raced = f"; {shown if others else 'all others are eliminated'}" if sweep["spec"]["racing"] else ""
        typer.echo(f"highest interquartile mean: {settings}, with {score_text(best['iqm'])}{raced}")


@app.command()
def stop(sweep_id: SweepId, as_json: Json = False) -> None:
    """Start no further run of a sweep, and stop those that have not ended."""
    with connect() as remote:
        act(remote, "/sweeps", sweep_id, "stop", as_json=as_json)


@app.command()
def retry(
    sweep_id: SweepId,
    wait: Annotated[bool, typer.Option(help="Wait until it has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Queue a sweep's failed and stopped runs again, start others in place of deleted and changed ones, and
    continue it."""
    with connect() as remote:
        act(remote, "/sweeps", sweep_id, "retry", wait=wait, as_json=as_json)


@app.command()
def extend(
    sweep_id: SweepId,
    max_seeds: MaxSeeds = None,
    configurations: Annotated[
        int | None, typer.Option(help="Random configurations, with those so far.")
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option(help="Further values of a setting: learning_rate=0.03. Repeatable.")
    ] = None,
    max_runs: MaxRuns = None,
    max_agent_steps: MaxAgentSteps = None,
    max_time_s: MaxTime = None,
    wait: Annotated[bool, typer.Option(help="Wait until it has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Give a sweep more seeds, configurations, values or budget, and continue it."""
    dimensions = _parse_dimensions("--add", add or [], with_n=None)
    body = _without_none({"max_seeds": max_seeds, "n_configurations": configurations})
    if dimensions:
        body["values"] = {path: dimension["values"] for path, dimension in dimensions.items()}
    if budget := _budget_body(max_runs, max_agent_steps, max_time_s):
        body["budget"] = budget
    with connect() as remote:
        act(remote, "/sweeps", sweep_id, "extend", body=body, wait=wait, as_json=as_json)


def _parse_dimensions(option: str, texts: Sequence[str], *, with_n: bool | None) -> dict[str, dict[str, Any]]:
    """The dimensions of an option's values, by field path.

    Raises:
        typer.Exit: one is invalid, or two are of one field.
    """
    dimensions = {}
    for text in texts:
        path, dimension = _parse_dimension(text, with_n=with_n)
        if path in dimensions:
            raise fail(f"{option} {path.removeprefix('config.')}: is given twice")
        dimensions[path] = dimension
    return dimensions


def _path(assignment: str, section: str) -> str:
    """The field path of `name=value`, whose name may have its section."""
    return f"{section}.{assignment.partition('=')[0].removeprefix(f'{section}.')}"


def _parse_dimension(text: str, *, with_n: bool | None) -> tuple[str, dict[str, Any]]:
    """Parse `name=values` into a field path and a dimension.

    Args:
        text: the assignment.
        with_n: True: a range needs its number of values; False: it must not have one; None: only lists of
            values are allowed.

    Raises:
        typer.Exit: it is neither a list of values nor a range.
    """
    name, _, values = text.partition("=")
    if not name or not values:
        raise fail(f"{text}: expected name=value,value or name=uniform:low:high")
    path = name if "." in name else f"config.{name}"
    distribution, *bounds = values.split(":")
    known = get_args(Distribution)
    misspelt = bool(bounds) and bool(similar_names(distribution, known))
    looks_like_range = (
        distribution in known or misspelt or (distribution.isidentifier() and _are_bounds(bounds))
    )
    if looks_like_range and with_n is None:
        raise fail(f"{text}: expected values separated by commas")
    if distribution not in known:
        if looks_like_range:
            raise fail(f"{text}: unknown range {quoted(distribution)}; use one of {', '.join(known)}")
        return path, {"values": [value_of(value) for value in values.split(",")]}
    wanted = ":n, the number of values" if with_n else "; random sampling takes no number of values"
    expected = f"{text}: expected {name}={distribution}:low:high{wanted}"
    try:
        low, high, *n = (float(bound) for bound in bounds)
    except ValueError:
        raise fail(expected) from None
    if len(n) != int(bool(with_n)) or not all(number.is_integer() for number in n):
        raise fail(expected)
    return path, {"distribution": distribution, "low": low, "high": high} | ({"n": int(n[0])} if n else {})


def _are_bounds(texts: Sequence[str]) -> bool:
    try:
        return len([float(text) for text in texts]) >= 2
    except ValueError:
        return False


def _budget_body(runs: int | None, agent_steps: int | None, time_s: float | None) -> dict[str, Any]:
    return _without_none({"runs": runs, "agent_steps": agent_steps, "wall_time_s": time_s})


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
