"""Helpers of the worker tests: claims, checkpoints, points and rows."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Engine, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as metrics
from backend.coordination import claims
from backend.coordination.context import Context
from backend.db import Checkpoint, Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.runs.runs import repository as runs
from backend.specs import events
from tests.support.rows import checkpoint_row, make_run
from tests.support.waiting import PATIENCE_S, until
from tests.workers.fake_engine import PIDS

GIB = 2**30

ENDLESS = 10**9
"""Agent steps of a run that does not finish within a test, however slow the machine."""

Start = Callable[..., subprocess.Popen[bytes]]
"""Starts a worker process with changed settings."""


@dataclass(frozen=True)
class FlakyContext(Context):
    """A worker's connections to a database that is unreachable while `outage` is not empty."""

    outage: list[bool] = field(default_factory=list)

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
        if self.outage:
            raise OperationalError("SELECT 1", {}, Exception("connection refused"))


def claim(engine: Engine, host: str = "a", **changes: Any) -> claims.Claim | None:
    """Claim a run for a host with ample memory."""
    wanted: dict[str, Any] = {"queues": ["cpu"], "free_memory_bytes": 64 * GIB, "lease_s": 60.0}
    with writing(engine) as session:
        return claims.claim(session, host, **(wanted | changes))


def run_row(engine: Engine, run_id: str) -> Run:
    """Return the current row of a run."""
    with reading(engine) as session:
        run = runs.get(session, run_id)
        assert run is not None
        return run


def expire_lease(engine: Engine, run_id: str) -> None:
    """Set the end of a run's lease to a second ago."""
    with writing(engine) as session:
        past = database_now(session) - timedelta(seconds=1)
        session.execute(update(Run).where(Run.id == run_id).values(lease_expires_at=past))


def lose(session: Session, run_id: str) -> None:
    """Let a run's lease expire, and find it expired before its worker can renew it or lock the run."""
    past = database_now(session) - timedelta(seconds=1)
    session.execute(update(Run).where(Run.id == run_id).values(lease_expires_at=past))
    assert claims.expire(session) == [run_id]


def add_checkpoint(session: Session, run_id: str, agent_steps: int, **changes: Any) -> Checkpoint:
    """Add a checkpoint's row in an open transaction."""
    checkpoint = checkpoint_row(run_id, agent_steps, **changes)
    session.add(checkpoint)
    session.flush()
    return checkpoint


def points(*agent_steps: int, metric: str = "loss/policy") -> events.PointsEvent:
    """Points with their agent step as value."""
    return events.PointsEvent(
        metric=metric,
        agent_steps=list(agent_steps),
        frames=list(agent_steps),
        wall_time_s=[step / 1000 for step in agent_steps],
        episodes=[0] * len(agent_steps),
        value=[float(step) for step in agent_steps],
    )


def stored_points(engine: Engine, run_id: str, metric: str = "loss/policy") -> list[int]:
    """Return the agent steps of a run's live points, in the order of recording."""
    with reading(engine) as session:
        rows = metrics.list_series(session, [run_id], [metric])
        if not rows:
            return []
        return [int(step) for part in metrics.all_points(session, rows[0].id) for step in part["agent_steps"]]


FAKE_ENGINE = (sys.executable, str(Path(__file__).parent / "fake_engine.py"))


def fake_run(engine: Engine, *, agent_steps: int = 50, algorithm: str = "paac", **notes: Any) -> Run:
    """Store a run for the fake engine; `notes` control its behaviour."""
    return make_run(engine, algorithm=algorithm, stop={"agent_steps": agent_steps}, notes=json.dumps(notes))


def until_state(engine: Engine, run_id: str, *states: str, timeout_s: float = PATIENCE_S) -> Run:
    """Wait until a run is in one of these states."""

    def in_state() -> Run | None:
        row = run_row(engine, run_id)
        return row if row.state in states else None

    return until(in_state, timeout_s)


def moves(engine: Engine, run_id: str) -> list[str]:
    """Return every state that a run has had, in order."""
    with reading(engine) as session:
        return [str(t.after) for t in runs.transitions(session, run_id)]


def engines_of(runs_dir: Path) -> list[psutil.Process]:
    """Return the running engines of a worker and what fake ones started, by the PIDs that they left."""
    pids = [int(path.name) for path in runs_dir.parent.glob(f"{PIDS}/*")]
    for path in runs_dir.glob("*/attempts/*/engine.json"):
        with suppress(ValueError):  # it is being written
            pids.append(json.loads(path.read_text())["pid"])
    return [process for pid in {*pids} if (process := running(pid)) and _has_word(process, str(runs_dir))]


def running(pid: int) -> psutil.Process | None:
    """Return a process, None if it has ended."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    return None


def _has_word(process: psutil.Process, word: str) -> bool:
    try:
        return word in " ".join(process.cmdline())
    except psutil.Error:
        return False
