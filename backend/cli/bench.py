"""`callboard bench`: how fast this machine's service, worlds and GA3C are, beside what they should be."""

import json
import logging
import os
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from backend.cli import bench_engine
from backend.cli.terminal import fail

if TYPE_CHECKING:
    from workers.engine.algorithms.ga3c_bench import Measured

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)
app.command("engine")(bench_engine.engine)

GOALS: dict[str, float] = {
    "ingest_points_per_s": 100_000,
    "bytes_per_point": 16,
    "chart_20_ms": 150,
    "list_ms": 100,
}
"""A rate should reach its goal; of all else, less is better."""

GA3C_GOAL = 0.9
"""Share of the best hand-set TPS that the walk should come to."""

DQN_GOAL = 1.5
"""Times Stable-Baselines3's rate."""

_ROWS: dict[str, str] = {
    "ingest_points_per_s": "points/s from an engine's log",
    "append_points_per_s": "points/s without the log",
    "bytes_per_point": "bytes a point on disk",
    "chart_20_ms": "chart of 20 runs (ms)",
    "chart_20_smoothed_ms": "the same, smoothed (ms)",
    "chart_5_ms": "chart of 5 runs (ms)",
    "list_ms": "filtered list (ms)",
    "list_all_ms": "whole list (ms)",
    "live_append_ms": "a live second's commit (ms)",
}


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command()
def service(
    database_url: Annotated[
        str | None,
        typer.Option(help="An empty database to measure on; what is written stays in it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure ingest, charts and lists on SQLite and, where a server is at hand, on PostgreSQL.

    Without a URL both databases are temporary.
    """
    from backend.cli import bench_service

    # Alembic tells of each migration it applies.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    results: dict[str, dict[str, float]] = {}
    before = os.getloadavg()[0]
    # Whatever happens, the temporary servers end.
    with closing(bench_service.databases(database_url)) as databases:
        for name, url in databases:
            if not as_json:
                typer.echo(f"measuring {name}, which takes a minute or two", err=True)
            results[name] = bench_service.measure(url)
    machine = {"cpus": os.cpu_count() or 1, "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        typer.echo(json.dumps({"goals": GOALS, "machine": machine, "databases": results}))
        return
    Console().print(_table(results))
    typer.echo(
        "Charts: 1,000 of 100,000 points a run. Lists: a page of 10,000 runs, the best score first.\n"
        "A live second: 20 series of 5 points.\n"
        f"Medians on {machine['cpus']} cores; load {machine['load_before']:.1f} before, "
        f"{machine['load_after']:.1f} after."
    )


@app.command()
def environments(
    ids: Annotated[list[str] | None, typer.Argument(help="Worlds; one of each kind by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure worlds, one alone and many at once, beside gymnasium's own and EnvPool's, in agent steps/s."""
    from backend.specs.environments import ENVIRONMENTS
    from workers.engine.envs import bench as worlds

    for one in ids or []:
        if one not in ENVIRONMENTS:
            raise fail(f"environment: unknown environment {one!r:.80}")
    before = os.getloadavg()[0]
    results = {one: worlds.measure(one) for one in ids or worlds.WORLDS}
    machine = {"cpus": os.cpu_count() or 1, "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        typer.echo(json.dumps({"machine": machine, "batch": worlds.BATCH, "environments": results}))
        return
    table = Table(title="callboard bench environments: agent steps a second")
    table.add_column("world")
    columns = ("single", "batched", "gymnasium", "envpool")
    for column in columns:
        table.add_column(column, justify="right")
    for one, found in results.items():
        table.add_row(one, *(f"{found[column]:,.0f}" if column in found else "" for column in columns))
    Console().print(table)
    typer.echo(
        f"Random play. Batched: {worlds.BATCH} on {machine['cpus']} processes. gymnasium's: one alone; "
        "EnvPool's: batched, where it is installed.\n"
        f"Load {machine['load_before']:.1f} before, {machine['load_after']:.1f} after."
    )


@app.command()
def ga3c(
    environment: Annotated[str, typer.Argument(help="A world that GA3C can learn.")] = "ALE/Pong-v5",
    grid_seconds: Annotated[float, typer.Option(min=1, help="For each setting of the grid.")] = 10.0,
    walk_seconds: Annotated[float, typer.Option(min=1, help="For the walk from one of each.")] = 600.0,
    interval_seconds: Annotated[
        float, typer.Option(min=2, help="Between two changes of the walk; the paper has a minute.")
    ] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure GA3C's own choice of N_A, N_P and N_T against a grid set by hand, in trainings a second."""
    from backend.specs.run import InvalidSpec
    from workers.engine.algorithms import ga3c_bench
    from workers.engine.devices import prepare_torch

    prepare_torch()
    before = os.getloadavg()[0]
    try:
        found = ga3c_bench.measure(
            environment, grid_s=grid_seconds, walk_s=walk_seconds, interval_s=interval_seconds
        )
    except InvalidSpec as error:
        raise fail(str(error)) from None
    machine = {"cpus": os.cpu_count() or 1, "load_before": before, "load_after": os.getloadavg()[0]}
    share = found.reached_tps / found.best_tps
    if as_json:
        told = {
            "goal": GA3C_GOAL,
            "machine": machine,
            "environment": environment,
            "grid": [_plain(one) for one in found.grid],
            "again": _plain(found.again),
            "walk": [_plain(one) for one in found.walk],
            "best_tps": found.best_tps,
            "reached_tps": found.reached_tps,
            "share": share,
        }
        typer.echo(json.dumps(told))
        return
    console = Console()
    console.print(_drawn(f"A grid set by hand: {environment}", found.grid))
    console.print(_drawn("The walk from 1/1/1", found.walk, rows=40))
    verdict = "" if share >= GA3C_GOAL else ", missed"
    typer.echo(
        f"The walk came to {found.reached_tps:,.1f} TPS, {share:.0%} of the best of the grid, "
        f"{found.best_tps:,.1f} (goal {GA3C_GOAL:.0%}{verdict}).\n"
        f"On {machine['cpus']} cores; load {machine['load_before']:.1f} before, "
        f"{machine['load_after']:.1f} after."
    )


@app.command()
def gorila(
    environment: Annotated[str, typer.Argument(help="An Atari game.")] = "ALE/Pong-v5",
    seconds: Annotated[float, typer.Option(min=1, help="For each measurement.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure Gorila over N_act, N_learn and N_param, and DQN beside Stable-Baselines3's where installed."""
    from workers.engine.algorithms import gorila_bench
    from workers.engine.devices import prepare_torch

    bench_engine.check_game(environment)
    prepare_torch()
    before = os.getloadavg()[0]
    grid = {parts: gorila_bench.gorila(environment, seconds, *parts) for parts in gorila_bench.PARTS}
    dqn = bench_engine.dqn_beside_sb3(environment, seconds)
    machine = {"cpus": os.cpu_count() or 1, "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        names = ("n_actors", "n_learners", "n_shards")
        rows = [dict(zip(names, parts, strict=True)) | found for parts, found in grid.items()]
        typer.echo(json.dumps({"goal": DQN_GOAL, "machine": machine, "gorila": rows, "dqn": dqn}))
        return
    table = Table(title=f"Gorila on {environment}")
    for column in ("N_act", "N_learn", "N_param", "updates/s", "agent steps/s"):
        table.add_column(column, justify="right")
    for parts, found in grid.items():
        table.add_row(
            *map(str, parts), f"{found['updates_per_s']:,.1f}", f"{found['agent_steps_per_s']:,.0f}"
        )
    Console().print(table)
    theirs = dqn.get("stable_baselines3")
    beside = f", Stable-Baselines3's {theirs:,.0f}: {dqn['ratio']:.2f} times" if theirs else ""
    typer.echo(
        f"DQN, nature, an update every 4 decisions: {dqn['callboard']:,.0f} agent steps/s{beside} "
        f"(goal {DQN_GOAL}).\n"
        f"On {machine['cpus']} cores; load {machine['load_before']:.1f} before, "
        f"{machine['load_after']:.1f} after."
    )


def _plain(one: "Measured") -> dict[str, Any]:
    return {"began_s": one.began_s, "seconds": one.seconds, **one.setting._asdict(), "tps": one.tps}


def _drawn(title: str, measured: list["Measured"], rows: int | None = None) -> Table:
    """TPS as bars, of every setting or, evenly spaced, of so many."""
    table = Table(title=title)
    for column in ("s", "N_A", "N_P", "N_T", "TPS"):
        table.add_column(column, justify="right")
    table.add_column("")
    most = max(one.tps for one in measured) or 1.0
    every = 1 if rows is None else -(-len(measured) // rows)
    for one in measured[::every]:
        bar = "█" * round(40 * one.tps / most)
        table.add_row(f"{one.began_s:.0f}", *(str(n) for n in one.setting), f"{one.tps:,.1f}", bar)
    return table


def _table(results: dict[str, dict[str, float]]) -> Table:
    table = Table(title="callboard bench service")
    table.add_column("what")
    table.add_column("goal", justify="right")
    for name in results:
        table.add_column(name, justify="right")
    for figure, label in _ROWS.items():
        goal = GOALS.get(figure)
        asked = "" if goal is None else f"{'≥' if _is_rate(figure) else '≤'} {goal:,.0f}"
        found = [_cell(figure, result[figure]) for result in results.values()]
        table.add_row(label, asked, *found)
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
