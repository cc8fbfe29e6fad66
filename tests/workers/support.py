"""What the worker tests share: hosts, checkpoints, and a look at rows."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

import psutil
from sqlalchemy import Engine, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from backend.db import Checkpoint, Host, Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.db.ids import new_id
from backend.metrics import repository as metrics
from backend.runs import repository as runs
from backend.specs import events
from backend.specs.environments import ENVIRONMENTS
from tests.support.runs import make_run
from workers import claims
from workers.context import Context

T = TypeVar("T")
GIB = 2**30

Start = Callable[..., subprocess.Popen[bytes]]
"""Starts a worker process with some settings of its own."""


@dataclass(frozen=True)
class FlakyContext(Context):
    """A worker's connections to a database that is out of reach while `away` holds something."""

    away: list[bool] = field(default_factory=list)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        self._connect()
        with super().writing() as session:
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        self._connect()
        with super().reading() as session:
            yield session

    def _connect(self) -> None:
        if self.away:
            raise OperationalError("SELECT 1", {}, Exception("connection refused"))


def add_host(engine: Engine, name: str, **changes: Any) -> None:
    """Store a host."""
    now = datetime.now(UTC)
    columns: dict[str, Any] = {
        "first_seen_at": now, "last_seen_at": now, "queues": ["cpu"], "slots": 4, "cpu_count": 2,
        "memory_bytes": 8 * GIB, "devices": ["cpu"], "environments": list(ENVIRONMENTS),
        "versions": {}, "load": {},
    }  # fmt: skip
    with writing(engine) as session:
        session.add(Host(id=name, **(columns | changes)))


def claim(engine: Engine, host: str = "a", **changes: Any) -> claims.Claim | None:
    """Claim for a host with plenty of everything."""
    wanted: dict[str, Any] = {"queues": ["cpu"], "free_memory_bytes": 64 * GIB, "lease_s": 60.0}
    with writing(engine) as session:
        return claims.claim(session, host, **(wanted | changes))


def run_row(engine: Engine, run_id: str) -> Run:
    """The run as it is now."""
    with reading(engine) as session:
        run = runs.get(session, run_id)
        assert run is not None
        return run


def run_out(engine: Engine, run_id: str) -> None:
    """Let a run's lease end a second ago."""
    with writing(engine) as session:
        past = database_now(session) - timedelta(seconds=1)
        session.execute(update(Run).where(Run.id == run_id).values(lease_expires_at=past))


def add_checkpoint(session: Session, run_id: str, agent_steps: int, **changes: Any) -> Checkpoint:
    """Store a checkpoint's row."""
    columns: dict[str, Any] = {
        "id": new_id(), "attempt": 1, "recorded_at": datetime.now(UTC),
        "frames": agent_steps, "updates": agent_steps // 80,
        "episodes": agent_steps // 20, "wall_time_s": agent_steps / 1000,
        "file": f"a1-s{agent_steps:012d}.pt", "sha256": "0" * 64, "size_bytes": 1,
    }  # fmt: skip
    checkpoint = Checkpoint(run_id=run_id, agent_steps=agent_steps, **(columns | changes))
    session.add(checkpoint)
    session.flush()
    return checkpoint


def points(*agent_steps: int, metric: str = "loss/policy") -> events.Points:
    """Points whose value is their agent step."""
    return events.Points(
        metric=metric,
        agent_steps=list(agent_steps),
        frames=list(agent_steps),
        wall_time_s=[step / 1000 for step in agent_steps],
        episodes=[0] * len(agent_steps),
        value=[float(step) for step in agent_steps],
    )


def stored_points(engine: Engine, run_id: str, metric: str = "loss/policy") -> list[int]:
    """Agent steps of the points of a run that are drawn, in order of arrival."""
    with reading(engine) as session:
        found = metrics.list_series(session, [run_id], [metric])
        if not found:
            return []
        return [
            int(step) for part in metrics.all_points(session, found[0].id) for step in part["agent_steps"]
        ]


FAKE_ENGINE = (sys.executable, str(Path(__file__).parent / "fake_engine.py"))


def fake_run(engine: Engine, *, agent_steps: int = 50, **notes: Any) -> Run:
    """Store a run for the fake engine; `notes` tell it how to behave."""
    return make_run(engine, stop={"agent_steps": agent_steps}, notes=json.dumps(notes))


def until(condition: Callable[[], T | None], timeout_s: float = 60.0) -> T:
    """Wait until something is so; gives what the condition gave."""
    deadline = monotonic() + timeout_s
    while not (found := condition()):
        assert monotonic() < deadline, f"waited {timeout_s} s in vain"
        sleep(0.02)
    return found


def until_state(engine: Engine, run_id: str, *states: str, timeout_s: float = 60.0) -> Run:
    """Wait until a run is in one of these states."""

    def there() -> Run | None:
        row = run_row(engine, run_id)
        return row if row.state in states else None

    return until(there, timeout_s)


def moves(engine: Engine, run_id: str) -> list[str]:
    """Every state a run has been in, in order."""
    with reading(engine) as session:
        return [str(t.after) for t in runs.transitions(session, run_id)]


def engines_of(context: Context) -> list[psutil.Process]:
    """Living engines of a worker, and all they started."""
    return processes_with(str(context.settings.runs_dir))


def processes_with(word: str) -> list[psutil.Process]:
    """Living processes that have `word` in their command line."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE and word in " ".join(process.info["cmdline"] or [])
    ]
