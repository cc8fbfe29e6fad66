"""Test rows: each `..._row` builds a row, each `make_...` or `add_...` stores one."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine

from backend.db import Attempt, Checkpoint, Episode, Evaluation, Host, Run, Video
from backend.db.base import new_id
from backend.db.engine import writing
from backend.runs.runs import service
from backend.specs.agents import AgentCard, AgentScore
from backend.specs.environments import ENVIRONMENTS
from backend.specs.provenance import Provenance
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState

CARTPOLE: dict[str, Any] = {
    "algorithm": "paac",
    "environment": "CartPole-v1",
    "stop": {"agent_steps": 10_000},
}
"""A small valid run request."""


def external_request(**changes: Any) -> dict[str, Any]:
    """The request for an external run in the same environment."""
    config = {"lr": 0.001, "optim.name": "adam", "layers": [64, 64], "anneal": True, "clip": None}
    request = {"origin": "external", "algorithm": "my_ppo", "environment": "CartPole-v1"}
    return request | {"config": config, "seed": 3} | changes


PROVENANCE = Provenance(
    version="0.2.0",
    commit="0123456789abcdef0123456789abcdef01234567",
    dirty=True,
    packages={"python": "3.11.9", "torch": "2.9.0"},
    command=["python", "-m", "workers.engine", "train", "a b"],
    processor="A processor",
    cpu_count=2,
    gpus=["A GPU"],
)
"""Of a test attempt, before its engine has started."""

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
"""Legal transitions from queued to each state."""


def make_run(engine: Engine, state: RunState = RunState.QUEUED, **changes: Any) -> Run:
    """Store a run in this state; `changes` override `CARTPOLE`."""
    with writing(engine) as session:
        run = service.create(session, parse_run_spec(CARTPOLE | changes))
        for after in PATHS[state]:
            service.transition(session, run, after, "for the test")
    return run


def make_fork(engine: Engine, parent_id: str, at_agent_steps: int, **changes: Any) -> Run:
    """Store a queued run that starts at these agent steps of its parent; no checkpoint is copied."""
    run = make_run(engine, **changes)
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.parent_id, row.forked_at_agent_steps = parent_id, at_agent_steps
        row.agent_steps = at_agent_steps
    return row


def add_attempt(engine: Engine, run_id: str, number: int = 1, **changes: Any) -> None:
    """Store an attempt's row."""
    columns: dict[str, Any] = {"host": "a", "claimed_at": datetime.now(UTC)}
    with writing(engine) as session:
        session.add(Attempt(run_id=run_id, number=number, **(columns | changes)))


def checkpoint_row(run_id: str, agent_steps: int = 100, **changes: Any) -> Checkpoint:
    """A checkpoint of a run's first attempt, with the engine's file name."""
    columns: dict[str, Any] = {
        "id": new_id(), "run_id": run_id, "attempt": 1, "recorded_at": datetime.now(UTC),
        "agent_steps": agent_steps, "frames": 4 * agent_steps, "updates": agent_steps // 80,
        "episodes": agent_steps // 100, "wall_time_s": agent_steps / 1000,
        "file": f"a1-s{agent_steps:012d}.pt", "sha256": "0" * 64, "size_bytes": 10,
        "removed": False, "superseded": False,
    }  # fmt: skip
    return Checkpoint(**(columns | changes))


def make_checkpoint(engine: Engine, run: Run, agent_steps: int = 100, **changes: Any) -> Checkpoint:
    """Store a checkpoint's row."""
    checkpoint = checkpoint_row(run.id, agent_steps, **changes)
    with writing(engine) as session:
        session.add(checkpoint)
    return checkpoint


def episode_row(run_id: str, agent_steps: int = 100, **changes: Any) -> Episode:
    """A stored training episode of a run's first attempt."""
    columns: dict[str, Any] = {
        "id": new_id(), "run_id": run_id, "attempt": 1, "kind": "training", "source": "",
        "recorded_at": datetime.now(UTC), "agent_steps": agent_steps, "frames": 4 * agent_steps,
        "wall_time_s": 1.0, "seed": 7, "episode_return": 5.0, "length_steps": 5, "length_frames": 20,
        "replay": "r.npz", "video": None, "superseded": False,
    }  # fmt: skip
    return Episode(**(columns | changes))


def video_row(run_id: str, agent_steps: int = 100, **changes: Any) -> Video:
    """A video that the script of an external run has sent."""
    columns: dict[str, Any] = {
        "id": new_id(), "run_id": run_id, "received_at": datetime.now(UTC), "agent_steps": agent_steps,
        "wall_time_s": 1.0, "form": "file", "upload": new_id(), "sent_bytes": 0, "video_bytes": 0,
    }  # fmt: skip
    return Video(**(columns | changes))


def evaluation_row(run_id: str, agent_steps: int, mean_return: float | None, **changes: Any) -> Evaluation:
    """An evaluation of 30 episodes, pending if `mean_return` is None."""
    columns: dict[str, Any] = {
        "id": new_id(), "run_id": run_id, "attempt": 1, "requested_at": datetime(2026, 1, 1, tzinfo=UTC),
        "protocol": "plain", "n_episodes": 30, "seed": 0, "agent_steps": agent_steps,
        "frames": 4 * agent_steps, "wall_time_s": agent_steps / 1000,
        "checkpoint": f"a1-s{agent_steps:012d}.pt",
        "returns": [] if mean_return is None else [mean_return] * 30, "lengths_frames": [],
        "mean_return": mean_return,
    }  # fmt: skip
    return Evaluation(**(columns | changes))


def agent_card(run_id: str, **changes: Any) -> AgentCard:
    """The card of an agent that was evaluated once."""
    score = AgentScore(
        protocol="plain", n_episodes=30, seed=0, mean_return=200.0, std_return=10.0, median_return=195.0,
        low=180.0, high=210.0, is_greedy=False, evaluated_at="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    fields: dict[str, Any] = {
        "run": run_id, "name": "a run", "checkpoint": "a1-s000000000100.pt", "sha256": "0" * 64,
        "agent_steps": 100, "frames": 100, "wall_time_s": 1.0, "seed": 3, "device": "cpu", "departures": [],
        "scores": [score], "over_seeds": None, "versions": PROVENANCE.packages, "commit": None,
    }  # fmt: skip
    return AgentCard.model_validate(fields | changes)


def host_row(name: str, **changes: Any) -> Host:
    """A host that is alive, with free slots and memory and without a GPU."""
    now = datetime.now(UTC)
    columns: dict[str, Any] = {
        "first_seen_at": now, "last_seen_at": now, "queues": ["cpu"], "slots": 4, "cpu_count": 2,
        "memory_bytes": 8 * 2**30, "devices": ["cpu"], "environments": list(ENVIRONMENTS),
        "versions": {}, "load": {},
    }  # fmt: skip
    return Host(id=name, **(columns | changes))


def add_host(engine: Engine, name: str, **changes: Any) -> None:
    """Store a host's row."""
    with writing(engine) as session:
        session.add(host_row(name, **changes))
