"""`python -m benchmarks engine`: every method beside this machine's emulators and other libraries."""

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from backend.specs.problems import quoted
from callboard_cli import fail

if TYPE_CHECKING:
    from benchmarks.rounds import RoundResults
    from benchmarks.rows import Goal, Row

DQN_ROUNDS = 3


def engine(
    environment: Annotated[str, typer.Argument(help="An Atari game.")] = "ALE/Breakout-v5",
    rounds: Annotated[int, typer.Option(min=1, help="Number of measurements of each row.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="Duration of each measurement.")] = 3.0,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROW",
            help="Row or group: goals (the default), ceiling, methods, peers, scaling or all; repeatable.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure methods in agent steps/s, the emulators and, after `make peers`, other libraries."""
    from benchmarks import rounds as bench_rounds
    from benchmarks.rows import goals, rows

    check_game(environment)
    cores = len(os.sched_getaffinity(0))
    aims = goals(cores)
    selected = chosen_rows(rows(cores), aims, only or ["goals"])
    before = os.getloadavg()[0]
    results = bench_rounds.measure(
        selected,
        environment,
        rounds=rounds,
        seconds=seconds,
        on_progress=lambda line: typer.echo(line, err=True),
    )
    machine = {"cores": cores, "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        report = {"machine": machine, "environment": environment, "rounds": rounds, "seconds": seconds}
        typer.echo(json.dumps(report | _plain(selected, aims, results)))
    else:
        Console().print(_table(environment, selected, aims, results))
        typer.echo(
            f"Medians of {rounds} rounds of {seconds:g} s, minimum and maximum; ratios are of one round. "
            "Time: share of all cores.\n"
            f"{cores} cores; load {before:.1f} before, {machine['load_after']:.1f} after."
        )
        for row, why in results.left_out.items():
            typer.echo(f"{row} was not measured: {why}")
    if any(bench_rounds.INSTALL not in why for why in results.left_out.values()):
        raise typer.Exit(1)


def check_game(environment: str) -> None:
    """Reject an environment that is not an Atari game."""
    from backend.specs.environments import ENVIRONMENTS

    if not environment.startswith("ALE/") or environment not in ENVIRONMENTS:
        raise fail(
            f"environment: {quoted(environment)} is not an Atari game; choose an id such as ALE/Pong-v5"
        )


def dqn_beside_sb3(environment: str, seconds: float) -> dict[str, float]:
    """Agent steps/s of Callboard's DQN and, if installed, Stable-Baselines3's, and their ratio."""
    from benchmarks import rounds as bench_rounds
    from benchmarks.rows import rows

    ids = {"dqn-nature": "callboard", "sb3-dqn": "stable_baselines3"}
    selected = [row for row in rows(len(os.sched_getaffinity(0))) if row.id in ids]
    results = bench_rounds.measure(selected, environment, rounds=DQN_ROUNDS, seconds=seconds)
    if "dqn-nature" in results.left_out:
        raise fail(f"dqn-nature: {results.left_out['dqn-nature']}")
    rates = {name: results.rate(row).median for row, name in ids.items() if row in results.agent_steps_per_s}
    share = results.share("dqn-nature", ["sb3-dqn"])
    return rates | ({"ratio": share.median} if share else {})


def chosen_rows(known: list["Row"], aims: list["Goal"], names: list[str]) -> list["Row"]:
    """The rows with these names or in these groups, in the table's order."""
    groups = {
        group: {row.id for row in known if row.group == group} for group in {row.group for row in known}
    }
    goals = {row for goal in aims for row in (goal.row, *goal.of)}
    sets = {**groups, "goals": goals, "all": {row.id for row in known}, **{row.id: {row.id} for row in known}}
    for name in names:
        if name not in sets:
            raise fail(f"--only: no row or group {quoted(name)}; choose from {', '.join(sets)}")
    chosen = set[str]().union(*(sets[name] for name in names))
    return [row for row in known if row.id in chosen]


def _ceiling(selected: list["Row"]) -> list[str]:
    return [row.id for row in selected if row.group == "ceiling"]


def _plain(selected: list["Row"], aims: list["Goal"], results: "RoundResults") -> dict[str, Any]:
    measured = [row for row in selected if row.id in results.agent_steps_per_s]
    ratios = [(goal, results.share(goal.row, goal.of)) for goal in aims]
    return {
        "rows": [
            {
                "row": row.id,
                "group": row.group,
                "title": row.title,
                "rounds": results.agent_steps_per_s[row.id],
                "agent_steps_per_s": results.rate(row.id)._asdict(),
                "of_ceiling": share._asdict()
                if (share := results.share(row.id, _ceiling(selected)))
                else None,
                "time": results.time_of(row.id),
            }
            for row in measured
        ],
        "goals": [
            {"row": goal.row, "beside": goal.beside, "at_least": goal.least, "aim": goal.aim}
            | share._asdict()
            for goal, share in ratios
            if share is not None
        ],
        "left_out": results.left_out,
    }


def _table(environment: str, selected: list["Row"], aims: list["Goal"], results: "RoundResults") -> Table:
    table = Table(title=f"python -m benchmarks engine: {environment}")
    table.add_column("what")
    for column in ("agent steps/s", "of the ceiling", "environment, choosing, learning, rest"):
        table.add_column(column, justify="right")
    table.add_column("goal")
    group = selected[0].group
    for row in selected:
        if row.id not in results.agent_steps_per_s:
            continue
        if row.group != group:
            table.add_section()
            group = row.group
        rate, share = results.rate(row.id), results.share(row.id, _ceiling(selected))
        spent = results.time_of(row.id)
        table.add_row(
            row.title,
            f"{rate.median:,.0f} ({rate.least:,.0f} to {rate.most:,.0f})",
            f"{share.median:.0%}" if share else "",
            ", ".join(f"{part:.0%}" for part in spent.values()) if spent else "",
            "\n".join(_goal(goal, results) for goal in aims if goal.row == row.id),
        )
    return table


def _goal(goal: "Goal", results: "RoundResults") -> str:
    share = results.share(goal.row, goal.of)
    if share is None:
        return ""
    colour = "green" if share.median >= goal.least else "bold red"
    return (
        f"[{colour}]{share.median:.2f}[/] ({share.least:.2f} to {share.most:.2f}) × {goal.beside}, "
        f"at least {goal.least:g}"
    )
