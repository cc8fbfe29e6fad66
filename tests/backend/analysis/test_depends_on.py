"""The law of what is said of a run: it is a function of that run, or the answer names the others."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.analysis.comparisons import run_groups
from backend.analysis.comparisons.service import compare
from backend.analysis.metrics import repository as series
from backend.analysis.metrics.axes import Axes
from backend.analysis.metrics.early import EPISODE_LENGTH, mark_early
from backend.analysis.metrics.service import ChartRequest, chart
from backend.db import Run
from backend.db.engine import writing
from backend.runs.runs import listing, service
from backend.specs.departures import with_change
from backend.specs.events import PointsEvent
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from backend.statistics.grouping import Spread
from tests.support.rows import CARTPOLE

RETURN = "rollout/episode_return"
BROKEN_OFF = (RunState.FAILED, RunState.LOST, RunState.STOPPED)


def add_episodes(session: Session, run: Run, rng: np.random.Generator, n: int) -> None:
    """Append episodes of 10 agent steps; the first of some runs are early, for others run meanwhile."""
    idle = int(rng.integers(0, 2)) * 500 if run.agent_steps == 0 else 0
    steps = [run.agent_steps + idle + 10 * (at + 1) for at in range(n)]
    run.revision += 1
    points = [
        PointsEvent(
            metric=metric,
            agent_steps=steps,
            frames=steps,
            wall_time_s=[step / 100 for step in steps],
            episodes=list(range(n)),
            value=values,
        )
        for metric, values in ((RETURN, rng.normal(size=n).tolist()), (EPISODE_LENGTH, [10.0] * n))
    ]
    series.append(session, run.id, 1, run.revision, points)
    run.agent_steps = steps[-1]
    run.score = float(rng.normal())
    mark_early(session, run)


def new_run(session: Session, rng: np.random.Generator) -> Run:
    config = {"learning_rate": [0.01, 0.1, 0.2][rng.integers(3)]}
    changes = {"algorithm": ["paac", "a3c"][rng.integers(2)], "config": config, "seed": int(rng.integers(3))}
    run = service.create(session, parse_run_spec(CARTPOLE | changes))
    add_episodes(session, run, rng, int(rng.integers(1, 150)))
    run.state = [RunState.FINISHED, RunState.RUNNING, *BROKEN_OFF][rng.integers(5)]
    session.flush()
    return run


def change_one(
    session: Session, runs: list[Run], kind: str, rng: np.random.Generator
) -> tuple[Run, list[Run]]:
    """Add, remove, kill, extend, resume or change one run; return it, and the runs then."""
    if kind == "add":
        run = new_run(session, rng)
        return run, [*runs, run]
    run = runs[rng.integers(len(runs))]
    run.revision += 1
    if kind == "remove":
        return run, [other for other in runs if other is not run]
    if kind == "kill":
        run.state = BROKEN_OFF[rng.integers(3)]
    elif kind == "change":
        run.departures = with_change(run.departures, "learning_rate", 0.1, 0.05, run.agent_steps)
    else:
        run.state = RunState.RUNNING if kind == "resume" else run.state
        add_episodes(session, run, rng, 120)
    session.flush()
    return run, runs


def said(session: Session, runs: Collection[Run]) -> Iterator[tuple[str, set[str], dict[str, Any]]]:
    """Every statement: what it is, the runs that it is about, and its fields. Names of groups distinguish
    what is shown together, and are none."""
    ids = [run.id for run in runs]
    for at in ("common", "end"):
        answer = compare(session, ids, "training", at, 0.5).model_dump(mode="json")
        of_group = {group["id"]: {run["run"] for run in group["runs"]} for group in answer["groups"]}
        for group in answer["groups"]:
            for run in group.pop("runs"):
                yield f"score at {at}", {run["run"]}, run
            del group["name"]
            yield f"group at {at}", of_group[group["id"]], group
        for pair in answer["improvements"]:
            yield f"verdict at {at} {pair['a']} {pair['b']}", of_group[pair["a"]] | of_group[pair["b"]], pair
    axes = Axes("agent_steps", 50, 0.0, "window", None)
    spread = Spread.chosen(None, "ci95")
    for grouped in (False, True):
        request = ChartRequest(ids, [RETURN], [], axes, grouped, spread, [])
        answer = json.loads(bytes(chart(session, request)))
        for curve in answer["groups"] if grouped else answer["series"]:
            yield f"curve, grouped: {grouped}", set(curve["runs"]) if grouped else {curve["run"]}, curve
    node = listing.parse_selection("algorithm:paac or algorithm:a3c")
    for row in run_groups.page(session, node, "seed", "-score", 100, None).items:
        fields = row.model_dump(mode="json", exclude={"name"})
        if set(row.runs) <= set(ids):
            yield "row", set(row.runs), fields


def statements(
    session: Session, runs: Collection[Run]
) -> Mapping[tuple[str, frozenset[str]], dict[str, Any]]:
    return {(what, frozenset(about)): fields for what, about, fields in said(session, runs)}


@pytest.mark.parametrize(
    ("first", "n"), [(0, 4), *(pytest.param(at, 20, marks=pytest.mark.long) for at in range(0, 200, 20))]
)
def test_no_run_changes_what_is_said_of_another_unless_it_is_named(
    engine: Engine, first: int, n: int
) -> None:
    """200 random sets of 2 to 6 runs, a few of them in the gate."""
    n_equal = n_named = 0
    for number in range(first, first + n):
        rng = np.random.default_rng(number)
        with writing(engine) as session:
            runs = [new_run(session, rng) for _ in range(rng.integers(2, 7))]
            before = statements(session, runs)
            kind = ("add", "remove", "kill", "extend", "resume", "change")[number % 6]
            changed, after_runs = change_one(session, runs, kind, rng)
            after = statements(session, after_runs)
            for key, fields in before.items():
                if changed.id in key[1] or key not in after:
                    continue
                if changed.id in (*fields.get("depends_on", ()), *after[key].get("depends_on", ())):
                    n_named += 1
                    continue
                n_equal += 1
                assert after[key] == fields, (number, kind, key, changed.id)
            session.rollback()
    assert n_equal > 2 * n
    assert n_named > 0
