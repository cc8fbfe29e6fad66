"""`python -m benchmarks`: measures the service, environments and engines on this machine against goals."""

import json
import logging
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from backend.specs.algorithms import ALGORITHMS
from backend.specs.problems import quoted
from benchmarks import engine as bench_engine
from callboard_cli import fail
from callboard_cli.run_request import AgentSteps, Assignments, Score, WallTime, run_request

if TYPE_CHECKING:
    from benchmarks.ga3c import Measurement

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)
app.command("engine")(bench_engine.engine)

GOALS: dict[str, float] = {
    "ingest_points_per_s": 100_000,
    "bytes_per_point": 16,
    "chart_20_ms": 150,
    "list_ms": 100,
    "list_setting_ms": 100,
    "list_metric_ms": 100,
    "groups_p95_ms": 300,
}
"""Goals are lower bounds for rates, and upper bounds for everything else."""

GA3C_GOAL = 0.9
"""Fraction of the grid's best TPS that the dynamic adjustment should reach."""

DQN_GOAL = 1.5
"""Multiple of Stable-Baselines3's rate."""

ROWS: dict[str, str] = {
    "ingest_points_per_s": "points/s from an engine's log",
    "append_points_per_s": "points/s without the log",
    "bytes_per_point": "bytes per point on disk",
    "chart_20_ms": "chart of 20 runs (ms)",
    "chart_20_smoothed_ms": "the same, smoothed (ms)",
    "chart_5_ms": "chart of 5 runs (ms)",
    "list_ms": "filtered list (ms)",
    "list_all_ms": "whole list (ms)",
    "list_setting_ms": "list filtered and sorted by a setting (ms)",
    "list_metric_ms": "the same, sorted by a metric (ms)",
    "groups_first_ms": "groups of seeds, first request (ms)",
    "groups_ms": "groups of seeds, later requests (ms)",
    "groups_p95_ms": "the same, 95th percentile (ms)",
    "live_append_ms": "commit of one live second (ms)",
}


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command()
def service(
    database_url: Annotated[
        str | None,
        typer.Option(help="Empty database to measure on; the data stays in it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure ingest, charts and lists on SQLite and, if a server is installed, on PostgreSQL.

    Without a URL, both databases are temporary.
    """
    from benchmarks import service as bench_service

    # Alembic logs every migration.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    results: dict[str, dict[str, float]] = {}
    before = os.getloadavg()[0]
    # Stops the temporary servers after any error.
    with closing(bench_service.databases(database_url)) as databases:
        for name, url in databases:
            if not as_json:
                typer.echo(f"measuring {name}, about one or two minutes", err=True)
            results[name] = bench_service.measure(url)
    machine = {"cpus": len(os.sched_getaffinity(0)), "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        typer.echo(json.dumps({"goals": GOALS, "machine": machine, "databases": results}))
        return
    Console().print(_table(results))
    typer.echo(
        "Charts: 1,000 of 100,000 points per run. Lists: a page of 10,000 runs, best score first.\n"
        "One live second: 20 series of 5 points.\n"
        f"Medians on {machine['cpus']} cores; load {machine['load_before']:.1f} before, "
        f"{machine['load_after']:.1f} after."
    )


@app.command()
def environments(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Environment ids; by default one of each kind.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure environments in agent steps/s, single and batched, and those of gymnasium and EnvPool."""
    from backend.specs.environments import ENVIRONMENTS
    from benchmarks import environments as envs

    for environment_id in ids or []:
        if environment_id not in ENVIRONMENTS:
            raise fail(f"environment: unknown environment {quoted(environment_id)}")
    before = os.getloadavg()[0]
    results = {environment_id: envs.measure(environment_id) for environment_id in ids or envs.ENVS}
    machine = {"cpus": len(os.sched_getaffinity(0)), "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        typer.echo(json.dumps({"machine": machine, "batch": envs.BATCH, "environments": results}))
        return
    table = Table(title="python -m benchmarks environments: agent steps per second")
    table.add_column("environment")
    columns = ("single", "batched", "gymnasium", "envpool")
    for column in columns:
        table.add_column(column, justify="right")
    for environment_id, rates in results.items():
        table.add_row(
            environment_id, *(f"{rates[column]:,.0f}" if column in rates else "" for column in columns)
        )
    Console().print(table)
    typer.echo(
        f"Random play. Batched: {envs.BATCH} on {machine['cpus']} processes. gymnasium: single; "
        "EnvPool: batched, if installed.\n"
        f"Load {machine['load_before']:.1f} before, {machine['load_after']:.1f} after."
    )


@app.command()
def ga3c(
    environment: Annotated[str, typer.Argument(help="Environment that GA3C supports.")] = "ALE/Pong-v5",
    grid_seconds: Annotated[float, typer.Option(min=1, help="Duration of each grid setting.")] = 10.0,
    walk_seconds: Annotated[float, typer.Option(min=1, help="Duration of the dynamic adjustment.")] = 600.0,
    interval_seconds: Annotated[
        float, typer.Option(min=2, help="Interval of the dynamic adjustment; 60 in the paper.")
    ] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure GA3C's dynamic adjustment of N_A, N_P and N_T against a grid, in trainings per second."""
    from backend.specs.problems import InvalidSpec
    from benchmarks import ga3c as ga3c_bench
    from workers.engine.nn.devices import prepare_torch

    prepare_torch()
    before = os.getloadavg()[0]
    try:
        result = ga3c_bench.measure(
            environment, grid_s=grid_seconds, walk_s=walk_seconds, interval_s=interval_seconds
        )
    except InvalidSpec as error:
        raise fail(str(error)) from None
    machine = {"cpus": len(os.sched_getaffinity(0)), "load_before": before, "load_after": os.getloadavg()[0]}
    share = result.reached_tps / result.best_tps
    if as_json:
        report = {
            "goal": GA3C_GOAL,
            "machine": machine,
            "environment": environment,
            "grid": [_plain(measurement) for measurement in result.grid],
            "again": _plain(result.again),
            "walk": [_plain(measurement) for measurement in result.walk],
            "best_tps": result.best_tps,
            "reached_tps": result.reached_tps,
            "share": share,
        }
        typer.echo(json.dumps(report))
        return
    console = Console()
    console.print(_bar_table(f"Grid: {environment}", result.grid))
    console.print(_bar_table("Dynamic adjustment from 1/1/1", result.walk, rows=40))
    missed = "" if share >= GA3C_GOAL else ", missed"
    typer.echo(
        f"Dynamic adjustment reached {result.reached_tps:,.1f} TPS, {share:.0%} of the grid's best, "
        f"{result.best_tps:,.1f} (goal {GA3C_GOAL:.0%}{missed}).\n"
        f"On {machine['cpus']} cores; load {machine['load_before']:.1f} before, "
        f"{machine['load_after']:.1f} after."
    )


@app.command()
def gorila(
    environment: Annotated[str, typer.Argument(help="Atari game.")] = "ALE/Pong-v5",
    seconds: Annotated[float, typer.Option(min=1, help="Duration of each measurement.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure Gorila over N_act, N_learn and N_param, and DQN against Stable-Baselines3's, if installed."""
    from benchmarks import gorila as gorila_bench
    from workers.engine.nn.devices import prepare_torch

    bench_engine.check_game(environment)
    prepare_torch()
    before = os.getloadavg()[0]
    grid = {parts: gorila_bench.gorila(environment, seconds, *parts) for parts in gorila_bench.PARTS}
    dqn = bench_engine.dqn_beside_sb3(environment, seconds)
    machine = {"cpus": len(os.sched_getaffinity(0)), "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        names = ("n_actors", "n_learners", "n_shards")
        rows = [dict(zip(names, parts, strict=True)) | rates for parts, rates in grid.items()]
        typer.echo(json.dumps({"goal": DQN_GOAL, "machine": machine, "gorila": rows, "dqn": dqn}))
        return
    table = Table(title=f"Gorila on {environment}")
    for column in ("N_act", "N_learn", "N_param", "updates/s", "agent steps/s"):
        table.add_column(column, justify="right")
    for parts, rates in grid.items():
        table.add_row(
            *map(str, parts), f"{rates['updates_per_s']:,.1f}", f"{rates['agent_steps_per_s']:,.0f}"
        )
    Console().print(table)
    theirs = dqn.get("stable_baselines3")
    peer = f", Stable-Baselines3's {theirs:,.0f}: {dqn['ratio']:.2f} times" if theirs else ""
    typer.echo(
        f"DQN, nature, one update per 4 decisions: {dqn['callboard']:,.0f} agent steps/s{peer} "
        f"(goal {DQN_GOAL}).\n"
        f"On {machine['cpus']} cores; load {machine['load_before']:.1f} before, "
        f"{machine['load_after']:.1f} after."
    )


@app.command()
def trial(
    folder: Annotated[Path, typer.Argument(help="Folder of the trial; one that was stopped goes on.")],
    algorithm: Annotated[str, typer.Option(help="Algorithm id.")],
    environment: Annotated[list[str], typer.Option(help="Environment id; several times for several.")],
    preset: Annotated[list[str], typer.Option(help="Preset id; several times for several.")],
    seed: Annotated[
        list[int] | None, typer.Option(help="Seed; several times for several; default: 0.")
    ] = None,
    agent_steps: AgentSteps = None,
    wall_time_s: WallTime = None,
    score: Score = None,
    setting: Assignments = None,
) -> None:
    """Train presets on environments with several seeds, one run after the other; scores go to scores.csv."""
    from backend.specs.problems import InvalidSpec
    from benchmarks import trial as bench_trial

    if algorithm not in ALGORITHMS:
        raise fail(f"algorithm: unknown algorithm {quoted(algorithm)}; use one of {', '.join(ALGORITHMS)}")
    request = run_request(
        algorithm,
        environment[0],
        preset=None,
        stop={"agent_steps": agent_steps, "wall_time_s": wall_time_s, "score": score},
        settings=setting or [],
        environment_settings=[],
    )
    try:
        specs = {
            cell: bench_trial.spec_of(cell, request["config"], request["stop"])
            for cell in bench_trial.cells(algorithm, environment, preset, seed or [0])
        }
        bench_trial.run(folder, specs, typer.echo)
    except (InvalidSpec, bench_trial.TrialError) as error:
        raise fail(str(error)) from None
    typer.echo(f"{folder / bench_trial.TABLE}")


@app.command()
def centred(
    folder: Annotated[Path, typer.Argument(help="Folder of the runs; a search that was stopped goes on.")],
    hours: Annotated[float, typer.Option(help="Start no further run after this time.")] = 6.0,
    table: Annotated[
        Path | None,
        typer.Option(help="File of the results, default: runs.csv in the folder. Runs in it are skipped."),
    ] = None,
) -> None:
    """Search around the preset with centred observations on Atari; results go to runs.csv."""
    from benchmarks import centred as bench_centred
    from benchmarks.trial import TrialError

    table = table or folder / bench_centred.TABLE
    try:
        failed = bench_centred.run(folder, typer.echo, hours=hours, table=table)
    except TrialError as error:
        raise fail(str(error)) from None
    typer.echo(f"{table}")
    if failed:
        raise fail(f"{len(failed)} runs failed; the same command tries them again", 1)


def _plain(measurement: "Measurement") -> dict[str, Any]:
    return {
        "began_s": measurement.began_s,
        "seconds": measurement.seconds,
        **measurement.setting._asdict(),
        "tps": measurement.tps,
    }


def _bar_table(title: str, measured: list["Measurement"], rows: int | None = None) -> Table:
    """TPS as bars, of all measurements or of `rows` evenly spaced ones."""
    table = Table(title=title)
    for column in ("s", "N_A", "N_P", "N_T", "TPS"):
        table.add_column(column, justify="right")
    table.add_column("")
    most = max(measurement.tps for measurement in measured) or 1.0
    every = 1 if rows is None else -(-len(measured) // rows)
    for measurement in measured[::every]:
        bar = "█" * round(40 * measurement.tps / most)
        table.add_row(
            f"{measurement.began_s:.0f}",
            *(str(n) for n in measurement.setting),
            f"{measurement.tps:,.1f}",
            bar,
        )
    return table


def _table(results: dict[str, dict[str, float]]) -> Table:
    table = Table(title="python -m benchmarks service")
    table.add_column("what")
    table.add_column("goal", justify="right")
    for name in results:
        table.add_column(name, justify="right")
    for figure, label in ROWS.items():
        goal = GOALS.get(figure)
        goal_text = "" if goal is None else f"{'≥' if _is_rate(figure) else '≤'} {goal:,.0f}"
        cells = [_cell(figure, result[figure]) for result in results.values()]
        table.add_row(label, goal_text, *cells)
    return table


def _cell(figure: str, value: float) -> str:
    text = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    goal = GOALS.get(figure)
    if goal is None:
        return text
    met = value >= goal if _is_rate(figure) else value <= goal
    return f"[green]{text}[/]" if met else f"[bold red]{text}, missed[/]"


def _is_rate(figure: str) -> bool:
    return figure.endswith("_per_s")


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
