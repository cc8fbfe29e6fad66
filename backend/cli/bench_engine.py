"""`callboard bench engine`: every method beside this machine's emulators and beside what others have made."""

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from backend.cli.terminal import fail

if TYPE_CHECKING:
    from backend.cli.bench_rounds import Found
    from workers.engine.bench.rows import Goal, Row

DQN_ROUNDS = 3


def engine(
    environment: Annotated[str, typer.Argument(help="An Atari game.")] = "ALE/Breakout-v5",
    rounds: Annotated[int, typer.Option(min=1, help="How often each row is measured.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="For each row in each round.")] = 3.0,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROW",
            help="Rows, or the groups goals (the default), ceiling, methods, peers, scaling, all; as often "
            "as you like.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure methods in agent steps/s beside the emulators alone and, after `make peers`, others' code."""
    from backend.cli import bench_rounds
    from workers.engine.bench.rows import goals, rows

    check_game(environment)
    cores = len(os.sched_getaffinity(0))
    aims = goals(cores)
    asked = _asked(rows(cores), aims, only or ["goals"])
    before = os.getloadavg()[0]
    found = bench_rounds.measure(
        asked, environment, rounds=rounds, seconds=seconds, say=lambda line: typer.echo(line, err=True)
    )
    machine = {"cores": cores, "load_before": before, "load_after": os.getloadavg()[0]}
    if as_json:
        told = {"machine": machine, "environment": environment, "rounds": rounds, "seconds": seconds}
        typer.echo(json.dumps(told | _plain(asked, aims, found)))
    else:
        Console().print(_table(environment, asked, aims, found))
        typer.echo(
            f"Medians of {rounds} rounds of {seconds:g} s, least and most; ratios are of rows of one round. "
            "A decision's time: share of all cores.\n"
            f"{cores} cores; load {before:.1f} before, {machine['load_after']:.1f} after."
        )
        for row, why in found.left_out.items():
            typer.echo(f"{row} is left out: {why}")
    if any(bench_rounds.INSTALL not in why for why in found.left_out.values()):
        raise typer.Exit(1)


def check_game(environment: str) -> None:
    """Refuse what is no Atari game."""
    from backend.specs.environments import ENVIRONMENTS

    if not environment.startswith("ALE/") or environment not in ENVIRONMENTS:
        raise fail(f"environment: {environment!r:.80} is no Atari game")


def dqn_beside_sb3(environment: str, seconds: float) -> dict[str, float]:
    """Agent steps a second of our DQN and, where it is installed, Stable-Baselines3's, and the ratio."""
    from backend.cli import bench_rounds
    from workers.engine.bench.rows import rows

    ids = {"dqn-nature": "callboard", "sb3-dqn": "stable_baselines3"}
    asked = [row for row in rows(len(os.sched_getaffinity(0))) if row.id in ids]
    found = bench_rounds.measure(asked, environment, rounds=DQN_ROUNDS, seconds=seconds)
    if "dqn-nature" in found.left_out:
        raise fail(f"dqn-nature: {found.left_out['dqn-nature']}")
    rates = {name: found.rate(row).median for row, name in ids.items() if row in found.agent_steps_per_s}
    share = found.share("dqn-nature", ["sb3-dqn"])
    return rates | ({"ratio": share.median} if share else {})


def _asked(known: list["Row"], aims: list["Goal"], names: list[str]) -> list["Row"]:
    """The rows of these names, in the table's order."""
    groups = {
        group: {row.id for row in known if row.group == group} for group in {row.group for row in known}
    }
    goals = {row for goal in aims for row in (goal.row, *goal.of)}
    sets = {**groups, "goals": goals, "all": {row.id for row in known}, **{row.id: {row.id} for row in known}}
    for name in names:
        if name not in sets:
            raise fail(f"--only: no row or group {name!r:.80}; there are {', '.join(sets)}")
    chosen = set[str]().union(*(sets[name] for name in names))
    return [row for row in known if row.id in chosen]


def _ceiling(asked: list["Row"]) -> list[str]:
    return [row.id for row in asked if row.group == "ceiling"]


def _plain(asked: list["Row"], aims: list["Goal"], found: "Found") -> dict[str, Any]:
    measured = [row for row in asked if row.id in found.agent_steps_per_s]
    ratios = [(goal, found.share(goal.row, goal.of)) for goal in aims]
    return {
        "rows": [
            {
                "row": row.id,
                "group": row.group,
                "title": row.title,
                "rounds": found.agent_steps_per_s[row.id],
                "agent_steps_per_s": found.rate(row.id)._asdict(),
                "of_ceiling": share._asdict() if (share := found.share(row.id, _ceiling(asked))) else None,
                "time": found.time_of(row.id),
            }
            for row in measured
        ],
        "goals": [
            {"row": goal.row, "beside": goal.beside, "at_least": goal.least, "aim": goal.aim}
            | share._asdict()
            for goal, share in ratios
            if share is not None
        ],
        "left_out": found.left_out,
    }


def _table(environment: str, asked: list["Row"], aims: list["Goal"], found: "Found") -> Table:
    table = Table(title=f"callboard bench engine: {environment}")
    table.add_column("what")
    for column in ("agent steps/s", "of the ceiling", "environment, choosing, learning, rest"):
        table.add_column(column, justify="right")
    table.add_column("goal")
    group = asked[0].group
    for row in asked:
        if row.id not in found.agent_steps_per_s:
            continue
        if row.group != group:
            table.add_section()
            group = row.group
        rate, share = found.rate(row.id), found.share(row.id, _ceiling(asked))
        spent = found.time_of(row.id)
        table.add_row(
            row.title,
            f"{rate.median:,.0f} ({rate.least:,.0f} to {rate.most:,.0f})",
            f"{share.median:.0%}" if share else "",
            ", ".join(f"{part:.0%}" for part in spent.values()) if spent else "",
            "\n".join(_goal(goal, found) for goal in aims if goal.row == row.id),
        )
    return table


def _goal(goal: "Goal", found: "Found") -> str:
    share = found.share(goal.row, goal.of)
    if share is None:
        return ""
    colour = "green" if share.median >= goal.least else "bold red"
    return (
        f"[{colour}]{share.median:.2f}[/] ({share.least:.2f} to {share.most:.2f}) × {goal.beside}, "
        f"at least {goal.least:g}"
    )
