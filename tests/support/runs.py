"""Runs to test with."""

from typing import Any

from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.runs import repository
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState

CARTPOLE: dict[str, Any] = {
    "algorithm": "paac",
    "environment": "CartPole-v1",
    "stop": {"agent_steps": 10_000},
}
"""A small valid request."""

PATHS: dict[RunState, list[RunState]] = {
    RunState.QUEUED: [],
    RunState.STARTING: [RunState.STARTING],
    RunState.RUNNING: [RunState.STARTING, RunState.RUNNING],
    RunState.STOPPING: [RunState.STARTING, RunState.RUNNING, RunState.STOPPING],
    RunState.FINISHED: [RunState.STARTING, RunState.RUNNING, RunState.FINISHED],
    RunState.STOPPED: [RunState.STARTING, RunState.RUNNING, RunState.STOPPING, RunState.STOPPED],
    RunState.FAILED: [RunState.STARTING, RunState.FAILED],
    RunState.LOST: [RunState.STARTING, RunState.RUNNING, RunState.LOST],
}
"""A legal way to each state."""


def make_run(engine: Engine, state: RunState = RunState.QUEUED, **changes: Any) -> Run:
    """Store a run in some state; `changes` go over `CARTPOLE`."""
    with writing(engine) as session:
        run = repository.create(session, parse_run_spec(CARTPOLE | changes))
        for after in PATHS[state]:
            repository.transition(session, run, after, "for the test")
    return run
